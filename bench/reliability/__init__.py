"""What Keygraph does when things go wrong: faults of DynamoDB, clients that leave, workers that are killed, attacks."""
