// The peer on Node: Apollo Server, DataLoader and AWS SDK v3, written as their documentation teaches.

import { readFileSync } from "node:fs";
import { ApolloServer } from "@apollo/server";
import { startStandaloneServer } from "@apollo/server/standalone";
import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { BatchGetCommand, DynamoDBDocumentClient, QueryCommand } from "@aws-sdk/lib-dynamodb";
import { NodeHttpHandler } from "@smithy/node-http-handler";
import DataLoader from "dataloader";
import { GraphQLScalarType } from "graphql";
import { Agent } from "node:http";

const TABLE = "EcommerceData";
const BATCH = 100;
const FILTER_PAGE = 60;

const dynamo = DynamoDBDocumentClient.from(
  new DynamoDBClient({
    endpoint: process.env.BENCH_STORE,
    region: process.env.AWS_REGION,
    requestHandler: new NodeHttpHandler({ httpAgent: new Agent({ keepAlive: true, maxSockets: 256 }) }),
  }),
);

// One loader for each kind of node: the keys that one tick asks for, a hundred in a request.
function nodeLoader(prefix) {
  return new DataLoader(async (ids) => {
    const items = new Map();
    const chunks = [];
    for (let start = 0; start < ids.length; start += BATCH) chunks.push(ids.slice(start, start + BATCH));
    await Promise.all(
      chunks.map(async (chunk) => {
        let wanted = { [TABLE]: { Keys: chunk.map((id) => ({ PK: prefix + id, SK: prefix + id })) } };
        while (wanted && Object.keys(wanted).length) {
          const answer = await dynamo.send(new BatchGetCommand({ RequestItems: wanted }));
          for (const item of answer.Responses[TABLE]) items.set(item.PK, item);
          wanted = answer.UnprocessedKeys;
        }
      }),
    );
    return ids.map((id) => items.get(prefix + id) ?? null);
  });
}

// One loader for each list. DynamoDB asks one partition at a time, so that its batch is as many requests; what they
// bring arrives together, and so the nodes of all of these lists make one batch.
function listLoader(options) {
  return new DataLoader(
    (keys) => Promise.all(keys.map(({ of, first }) => list(of, first, options))),
    { cacheKeyFn: ({ of, first }) => `${first} ${of}` },
  );
}

const createLoaders = () => ({
  users: nodeLoader("USER#"),
  products: nodeLoader("PRODUCT#"),
  categories: nodeLoader("CATEGORY#"),
  orders: listLoader({ prefix: "ORDER#", index: "GSI1" }),
  items: listLoader({ prefix: "PRODUCT#" }),
  categoriesOf: listLoader({ prefix: "CATEGORY#" }),
  children: listLoader({ prefix: "CHILD#" }),
  productsOf: listLoader({ prefix: "PRODUCT#", index: "GSI1" }),
});

function query(partition, { prefix, index, ...more }) {
  const start = index ?? "";
  return dynamo.send(
    new QueryCommand({
      TableName: TABLE,
      IndexName: index,
      KeyConditionExpression: prefix ? `${start}PK = :p AND begins_with(${start}SK, :s)` : `${start}PK = :p`,
      ...more,
      ExpressionAttributeValues: {
        ":p": partition,
        ...(prefix ? { ":s": prefix } : {}),
        ...more.ExpressionAttributeValues,
      },
    }),
  );
}

async function list(partition, first, options) {
  const items = [];
  let start;
  do {
    const answer = await query(partition, { ...options, Limit: first - items.length, ExclusiveStartKey: start });
    items.push(...answer.Items);
    start = answer.LastEvaluatedKey;
  } while (start && items.length < first);
  return items;
}

async function count(partition, options) {
  let total = 0;
  let start;
  do {
    const answer = await query(partition, { ...options, Select: "COUNT", ExclusiveStartKey: start });
    total += answer.Count;
    start = answer.LastEvaluatedKey;
  } while (start);
  return total;
}

const text = (value) => String(value);
const scalar = (name) => new GraphQLScalarType({ name, serialize: text, parseValue: text });

// A list is an object with what its fields need; the fields read.
const orders = (parent, { first }) => ({ partition: `USER#${parent.userId}`, first });

const resolvers = {
  DateTime: scalar("DateTime"),
  Decimal: scalar("Decimal"),
  UserType: { CUSTOMER: "customer", SELLER: "seller" },
  OrderStatus: {
    PENDING: "pending",
    PROCESSING: "processing",
    SHIPPED: "shipped",
    DELIVERED: "delivered",
    CANCELLED: "cancelled",
  },
  Query: {
    user: (_, { userId }, { loaders }) => loaders.users.load(userId),
    category: (_, { categoryId }, { loaders }) => loaders.categories.load(categoryId),
    users: (_, { first }) => ({ first }),
    products: async (_, { first, where }) => {
      const nodes = [];
      let start;
      do {
        const answer = await query("PRODUCT", {
          index: "GSI1",
          Limit: where ? FILTER_PAGE : first + 1,
          ExclusiveStartKey: start,
          ...(where && {
            FilterExpression: "price >= :least",
            ExpressionAttributeValues: { ":least": Number(where.price.gte) },
          }),
        });
        nodes.push(...answer.Items);
        start = answer.LastEvaluatedKey;
      } while (start && nodes.length <= first);
      return { nodes: nodes.slice(0, first), pageInfo: { hasNextPage: nodes.length > first } };
    },
  },
  UserConnection: {
    nodes: async ({ first }) => (await query("USER", { index: "GSI1", Limit: first })).Items,
    totalCount: () => count("USER", { index: "GSI1" }),
  },
  User: {
    createdAt: (user) => user.GSI1SK,
    orders,
  },
  UserOrdersConnection: {
    nodes: ({ partition, first }, _, { loaders }) => loaders.orders.load({ of: partition, first }),
    totalCount: ({ partition }) => count(partition, { prefix: "ORDER#", index: "GSI1" }),
  },
  Order: {
    items: async (order, { first }, { loaders }) => ({
      edges: await loaders.items.load({ of: `ORDER#${order.orderId}`, first }),
    }),
  },
  OrderItemsEdge: {
    node: (edge, _, { loaders }) => loaders.products.load(edge.productId),
  },
  Product: {
    categories: async (product, { first }, { loaders }) => {
      const edges = await loaders.categoriesOf.load({ of: `PRODUCT#${product.productId}`, first });
      return { nodes: loaders.categories.loadMany(edges.map((edge) => edge.categoryId)) };
    },
  },
  Category: {
    products: async (category, { first }, { loaders }) => {
      const edges = await loaders.productsOf.load({ of: `CATEGORY#${category.categoryId}`, first });
      return { nodes: loaders.products.loadMany(edges.map((edge) => edge.productId)) };
    },
    children: async (category, { first }, { loaders }) => {
      const edges = await loaders.children.load({ of: `CATEGORY#${category.categoryId}`, first });
      return { nodes: loaders.categories.loadMany(edges.map((edge) => edge.childCategoryId)) };
    },
  },
};

const typeDefs = readFileSync(new URL("./schema.graphql", import.meta.url), "utf-8");
const server = new ApolloServer({ typeDefs, resolvers });
await startStandaloneServer(server, {
  context: async () => ({ loaders: createLoaders() }),
  listen: { host: "127.0.0.1", port: Number(process.env.PORT) },
});
