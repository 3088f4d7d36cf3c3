"""Rows that their senders number: the state, the rules for the numbers, and the tables."""
