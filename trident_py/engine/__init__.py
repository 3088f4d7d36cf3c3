"""Runs a topology: the plan becomes a program of tasks, and one loop begins, decides and commits its batches.

Both clusters use it. ``local`` and ``spark`` hold the differences: where a task runs and how rows travel.
"""
