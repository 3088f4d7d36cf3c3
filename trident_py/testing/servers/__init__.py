"""Real servers for tests: to start, kill, restart and cut off. Each ends with the process that started it."""
