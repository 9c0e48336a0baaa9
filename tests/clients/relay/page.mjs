// Pages through a user's orders with Relay's runtime, one order at a time, and prints what its store then has.
import { createRequire } from "node:module";

// The compiler writes CommonJS modules, for a bundler.
const require = createRequire(`${process.cwd()}/`);
const artifact = (name) => require(`./src/__generated__/${name}.graphql.js`);
const relay = require("relay-runtime");
const { Environment, Network, RecordSource, Store } = relay;
const [address, userId] = process.argv.slice(2);

let requests = 0;
const environment = new Environment({
  store: new Store(new RecordSource()),
  network: Network.create(async (request, variables) => {
    requests += 1;
    const response = await fetch(address, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ doc_id: request.id, variables }),
    });
    return response.json();
  }),
});

const query = artifact("ordersQuery");
const page = artifact("ordersPageQuery");
const fragment = artifact("orders_user");
const renaming = artifact("ordersRenameMutation");

await relay.fetchQuery(environment, query, { userId }).toPromise();
const operation = relay.createOperationDescriptor(relay.getRequest(query), { userId });
environment.retain(operation);

const user = () => {
  const found = environment.lookup(operation.fragment).data.user;
  const selector = relay.getSingularSelector(fragment, found);
  return { name: found.name, ...environment.lookup(selector).data };
};

let found = user();
while (found.orders.pageInfo.hasNextPage) {
  const variables = { count: 1, cursor: found.orders.pageInfo.endCursor, id: found.id };
  await relay.fetchQuery(environment, page, variables).toPromise();
  found = user();
}
const orders = found.orders.edges.map(({ node }) => [node.orderId, node.total]);

// A mutation's payload changes what the store has of the same user.
await new Promise((done, failed) =>
  relay.commitMutation(environment, {
    mutation: renaming,
    variables: { input: { userId, name: `${found.name} Jr.` } },
    onCompleted: done,
    onError: failed,
  }),
);
console.log(JSON.stringify({ name: user().name, orders, requests }));
