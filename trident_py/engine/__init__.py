"""Runs a topology: the plan becomes a program of tasks, and one loop begins, decides and commits its batches."""
