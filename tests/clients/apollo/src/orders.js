// What a component of an Apollo application declares.
import { gql } from "@apollo/client";

export const ORDERS = gql`
  query Orders($userId: ID!, $after: String) {
    user(userId: $userId) {
      id
      ...UserOrders
    }
  }

  fragment UserOrders on User {
    name
    orders(first: 1, after: $after) {
      edges {
        node {
          id
          orderId
          total
        }
      }
      pageInfo {
        hasNextPage
        endCursor
      }
    }
  }
`;

export const RENAME = gql`
  mutation Rename($input: UpdateUserInput!) {
    updateUser(input: $input) {
      user {
        id
        name
      }
    }
  }
`;
