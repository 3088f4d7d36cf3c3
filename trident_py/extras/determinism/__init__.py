"""What is known of users' functions: their source is read, a second run is compared, the values they hold are digested.

`verdicts` reads the source of an operation for code that may give another result each time. It resolves names through
globals, closures, defaults, attributes and imports, so that aliases do not hide a call, and reads helpers with their
actual arguments. It executes no user code. It works as an allowlist: code that does not lead to a known name is a
finding too. `hook` adds two things to a run. `shadow_run` is another process, with another hash seed and another
`clock`, in which a sampled batch runs again (``topology.determinism.check``). `held_values` compares the values that
operations hold with those when a batch began.
"""
