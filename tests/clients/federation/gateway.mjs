// A supergraph of Keygraph and of another subgraph that extends its users. Prints what a gateway answers.
//
// node gateway.mjs ADDRESS QUERY...
import { ApolloGateway, IntrospectAndCompose, RemoteGraphQLDataSource } from "@apollo/gateway";
import { buildSubgraphSchema } from "@apollo/subgraph";
import { parse, validate } from "graphql";
import { createHandler } from "graphql-http/lib/use/http";
import { createServer } from "node:http";

const POINTS = { 12345: 7, 67890: 3, ann: 9 };
const schema = buildSubgraphSchema({
  typeDefs: parse(`
    extend schema @link(url: "https://specs.apollo.dev/federation/v2.3", import: ["@key"])
    type User @key(fields: "userId") { userId: ID!, points: Int! }
    type Query { members(ids: [ID!]!): [User]! }
  `),
  resolvers: {
    Query: { members: (_, { ids }) => ids.map((userId) => ({ userId })) },
    User: { points: ({ userId }) => POINTS[userId] ?? 0, __resolveReference: ({ userId }) => ({ userId }) },
  },
});
// Node closes connections that were idle for five seconds, which a gateway that starts slowly has kept.
const server = createServer({ keepAliveTimeout: 0 }, createHandler({ schema }));
await new Promise((ready) => server.listen(0, "127.0.0.1", ready));

const sent = { keygraph: 0, points: 0 };
class Counted extends RemoteGraphQLDataSource {
  willSendRequest() {
    sent[this.name] += 1;
  }
}
const silent = { debug() {}, info() {}, warn() {}, error: console.error };
const gateway = new ApolloGateway({
  supergraphSdl: new IntrospectAndCompose({
    subgraphs: [
      { name: "keygraph", url: `${process.argv[2]}/graphql` },
      { name: "points", url: `http://127.0.0.1:${server.address().port}/graphql` },
    ],
  }),
  buildService: ({ name, url }) => Object.assign(new Counted({ url }), { name }),
  logger: silent,
});
const { schema: supergraph, executor } = await gateway.load();

async function ask(query) {
  sent.keygraph = sent.points = 0;
  const document = parse(query);
  const mistakes = validate(supergraph, document);
  if (mistakes.length) throw mistakes[0];
  const answer = await executor({
    document, request: { query }, queryHash: query, operationName: null, context: {}, metrics: {}, logger: silent,
    overallCachePolicy: {}, schema: supergraph, source: query, cache: undefined, operation: document.definitions[0],
  });
  return { ...answer, sent: { ...sent } };
}

const found = [];
for (const query of process.argv.slice(3)) found.push(await ask(query));
console.log(JSON.stringify(found));
await gateway.stop();
server.close();
process.exit(0);
