"""Map states in a SQL table: the state, its backing map, and combining inside the database.

An update goes four steps, each of which may leave the rest to the one before it:

1. `state.SqlMapRows.multiUpdate` repeats the update if it loses a deadlock (`Transaction.repeat`).
2. `trident_py.state.maps`: the map of the kind lets its backing map combine; else it reads, updates and writes.
3. `backing.SqlBackingMap.multiCombine` sorts the partial results by key.
4. The dialect's `combine` sends one statement, with the rules of the kind as `combiners.Recipe` has them in SQL.
"""
