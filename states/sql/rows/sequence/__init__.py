"""Rows that their senders number: the state, the rules of the numbers, and the tables."""
