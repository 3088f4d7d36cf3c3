"""Row states in SQL tables: one module for each state, and the steps they share."""
