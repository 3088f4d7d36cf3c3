"""What the states in Redis, the gateway and an import have in common: a URL of Redis."""
