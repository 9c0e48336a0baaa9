// Pages through a user's orders with what GraphQL Code Generator makes of the schema and of these documents. The
// compiler checks every field that is read. Each document is sent by its id.
import type { TypedDocumentNode } from "@graphql-typed-document-node/core";
import { graphql } from "./gql/gql.js";
import type { OrdersQuery } from "./gql/graphql.js";

const ORDERS = graphql(`
  query Orders($userId: ID!, $after: String) {
    user(userId: $userId) {
      name
      orders(first: 1, after: $after) {
        nodes {
          orderId
          total
        }
        pageInfo {
          hasNextPage
          endCursor
        }
      }
    }
  }
`);
const RENAME = graphql(`
  mutation Rename($input: UpdateUserInput!) {
    updateUser(input: $input) {
      user {
        name
      }
    }
  }
`);

declare const process: { argv: [string, string, string, string] };
const [, , address, userId] = process.argv;

async function ask<Result, Variables>(
  document: TypedDocumentNode<Result, Variables>,
  variables: Variables,
): Promise<Result> {
  const { hash } = (document as unknown as { __meta__: { hash: string } }).__meta__;
  const response = await fetch(address, {
    method: "POST",
    headers: { "content-type": "application/json", accept: "application/graphql-response+json" },
    body: JSON.stringify({ documentId: hash, variables }),
  });
  const answer = (await response.json()) as { data: Result; errors?: unknown };
  if (answer.errors) throw new Error(JSON.stringify(answer.errors));
  return answer.data;
}

const orders: [string, string][] = [];
let name = "";
let after: string | null = null;
let hasNextPage = true;
while (hasNextPage) {
  const { user }: OrdersQuery = await ask(ORDERS, { userId, after });
  if (!user?.orders) throw new Error("there is no such user");
  name = user.name;
  for (const order of user.orders.nodes) orders.push([order.orderId, order.total]);
  ({ hasNextPage, endCursor: after } = user.orders.pageInfo);
}
const renamed = await ask(RENAME, { input: { userId, name: `${name} Jr.` } });
console.log(JSON.stringify({ name: renamed.updateUser?.user?.name, orders }));
