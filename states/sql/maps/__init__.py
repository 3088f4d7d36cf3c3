"""Map states in a SQL table: the state, its backing map, and combining inside the database."""
