"""Typed columns: what a column holds, its values one by one and as Arrow arrays, and rows in their keys' order."""
