"""Benchmarks: `make bench`.

Each group measures ours and a hand-written counterpart on the same data in one run.
"""
