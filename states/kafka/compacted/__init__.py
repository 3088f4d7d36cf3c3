"""Compacted topics: the state, its backing map, and the local table that follows a topic."""
