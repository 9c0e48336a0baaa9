// What a component of a Relay application declares. The compiler reads this file; page.mjs runs what it makes of it.
import { graphql } from "relay-runtime";

export const query = graphql`
  query ordersQuery($userId: ID!) {
    user(userId: $userId) {
      name
      ...orders_user
    }
  }
`;

export const fragment = graphql`
  fragment orders_user on User @argumentDefinitions(count: { type: "Int", defaultValue: 1 }, cursor: { type: "String" }) @refetchable(queryName: "ordersPageQuery") {
    orders(first: $count, after: $cursor) @connection(key: "orders_user_orders") {
      edges {
        node {
          orderId
          total
        }
      }
    }
  }
`;

export const mutation = graphql`
  mutation ordersRenameMutation($input: UpdateUserInput!) {
    updateUser(input: $input) {
      user {
        name
      }
    }
  }
`;
