"""`trident port`: translates Java topologies into Python modules that run with trident_py.

`source` parses Java, `declarations` collects the classes of all files, `scope` knows the types of names. `expressions`,
`operators`, `calls`, `closures`, `statements` and `loops` hold one handler for each kind of node; `library` says what a
Java method becomes. `classes` and `modules` write the Python, `layout` breaks long lines, `report` counts.

What has no handler or no entry raises `Untranslatable`: the statement stays as a comment beside a `raise
NotImplementedError`. Nothing is guessed. The Python calls `trident_py.extras.moving.java` where Java's meaning differs.
"""
