"""How a topology runs: the plan becomes a program of tasks, and one loop begins, decides and commits its batches.

Both clusters use it. What differs between them, where a task runs and how rows travel, is in ``local`` and ``spark``.
"""
