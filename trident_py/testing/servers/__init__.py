"""Real servers for tests, to start, kill, restart and disconnect. Each ends with the process that started it."""
