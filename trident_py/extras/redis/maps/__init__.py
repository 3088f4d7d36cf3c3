"""Map states in Redis, in the bytes that Storm's RedisMapState writes."""
