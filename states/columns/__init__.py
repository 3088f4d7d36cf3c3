"""Typed columns: the values a column holds, one by one and as Arrow arrays, and rows in key order."""
