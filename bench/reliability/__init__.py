"""How Keygraph behaves when things go wrong: faults of DynamoDB, clients that leave, killed workers, attacks."""
