"""States of rows in SQL tables: one module for each state, and the steps that they share."""
