"""Poison tuples: a batch that fails goes on without the tuples that fail alone, and these become dead letters."""
