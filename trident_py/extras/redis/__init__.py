"""States in Redis, in the bytes of storm-redis; its URL serves the gateway and an import, too."""
