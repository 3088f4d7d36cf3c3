"""What is known of users' functions: their source is read, a second run is compared, the values they hold are digested.

`verdicts` reads the source of an operation for code that may give another result each time. It resolves names through
globals, closures, defaults, attributes and imports, so that aliases do not hide a call, and reads helpers with their
actual arguments. It executes no user code. It works as an allowlist: code that does not lead to a known name is a
finding too. `recording` watches the tasks of a run with ``topology.determinism.check``: a sampled batch runs again in
another process, `shadow_run`, with another hash seed and another clock. `held_values` compares the values that
operations hold at a start with those when a batch began.
"""
