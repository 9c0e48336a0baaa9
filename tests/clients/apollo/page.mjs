// Pages through a user's orders with Apollo Client, one order at a time, and prints what its cache then has.
// The third argument is how documents are sent: as text, as automatic persisted queries, or by a manifest.
import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { ApolloClient, ApolloLink, HttpLink, InMemoryCache } from "@apollo/client";
import { PersistedQueryLink } from "@apollo/client/link/persisted-queries";
import { relayStylePagination } from "@apollo/client/utilities";
import { generatePersistedQueryIdsFromManifest } from "@apollo/persisted-query-lists";
import { ORDERS, RENAME } from "./src/orders.js";

const [uri, userId, way] = process.argv.slice(2);
const sent = [];
const http = new HttpLink({
  uri,
  fetch: (address, options) => {
    sent.push(options.method + (String(options.body ?? address).includes("query Orders") ? " text" : ""));
    return fetch(address, options);
  },
});
const sha256 = (text) => createHash("sha256").update(text).digest("hex");
const loadManifest = async () => JSON.parse(await readFile("persisted-query-manifest.json", "utf-8"));
const link = {
  text: () => http,
  automatic: () => new PersistedQueryLink({ sha256, useGETForHashedQueries: true }).concat(http),
  manifest: () =>
    new PersistedQueryLink(generatePersistedQueryIdsFromManifest({ loadManifest })).concat(http),
}[way]();

const client = new ApolloClient({
  link: ApolloLink.from([link]),
  cache: new InMemoryCache({ typePolicies: { User: { fields: { orders: relayStylePagination() } } } }),
});

let { data } = await client.query({ query: ORDERS, variables: { userId } });
const observed = client.watchQuery({ query: ORDERS, variables: { userId } });
const subscription = observed.subscribe({});
while (data.user.orders.pageInfo.hasNextPage) {
  await observed.fetchMore({ variables: { after: data.user.orders.pageInfo.endCursor } });
  data = client.readQuery({ query: ORDERS, variables: { userId } });
}
const { name, orders } = data.user;

// A mutation's payload changes what the cache has of the same user.
await client.mutate({ mutation: RENAME, variables: { input: { userId, name: `${name} Jr.` } } });
const renamed = client.readQuery({ query: ORDERS, variables: { userId } }).user.name;
subscription.unsubscribe();
client.stop();
console.log(
  JSON.stringify({ name: renamed, orders: orders.edges.map(({ node }) => [node.orderId, node.total]), sent }),
);
