// Pages through a user's orders with urql and its defaults, one order at a time, and prints what it was told.
// The third argument is how documents are sent: as text, or as automatic persisted queries.
import { cacheExchange, Client, fetchExchange, gql } from "@urql/core";
import { persistedExchange } from "@urql/exchange-persisted";

const [url, userId, way] = process.argv.slice(2);
const ORDERS = gql`
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
`;
const RENAME = gql`
  mutation Rename($input: UpdateUserInput!) {
    updateUser(input: $input) {
      user {
        name
      }
    }
  }
`;

const sent = [];
const persisted = way === "automatic" ? [persistedExchange()] : [];
const client = new Client({
  url,
  exchanges: [cacheExchange, ...persisted, fetchExchange],
  fetch: (address, options) => {
    sent.push(options.method + (decodeURIComponent(address).includes("query") ? " text" : ""));
    return fetch(address, options);
  },
});
const data = (result) => {
  if (result.error) throw result.error;
  return result.data;
};

const orders = [];
let page = { hasNextPage: true, endCursor: null };
let name;
while (page.hasNextPage) {
  const { user } = data(await client.query(ORDERS, { userId, after: page.endCursor }));
  orders.push(...user.orders.nodes.map((order) => [order.orderId, order.total]));
  [page, name] = [user.orders.pageInfo, user.name];
}
const renamed = data(await client.mutation(RENAME, { input: { userId, name: `${name} Jr.` } }));
console.log(JSON.stringify({ name: renamed.updateUser.user.name, orders, sent }));
