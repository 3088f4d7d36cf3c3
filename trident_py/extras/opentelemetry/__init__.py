"""Spans of a run: each batch is one, and its phases are its children."""
