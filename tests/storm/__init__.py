"""Recorded and fresh cases of real Storm Trident 2.8.3, run with trident_py's public API."""
