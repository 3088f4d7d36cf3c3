"""The real batch loop over simulated stores, logs, clocks and spouts, and the orders in which they may fail.
See docs/simulation.md."""
