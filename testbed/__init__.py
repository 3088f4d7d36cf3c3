"""Real servers and hosts for tests, benchmarks and examples. Each ends with the process that started it."""
