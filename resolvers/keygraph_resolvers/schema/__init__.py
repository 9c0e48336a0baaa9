"""What can be asked: the GraphQL schema of a graph, its inputs and scalars, and which part of the graph answers each field."""
