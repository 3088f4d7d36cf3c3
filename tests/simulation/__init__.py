"""The real batch loop over stores, a log, a clock and spouts that are simulated, and every order in which they may fail.
See docs/simulation.md."""
