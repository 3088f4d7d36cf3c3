"""Map states in a SQL table: the state, the backing map below its txid logic, and what one statement combines."""
