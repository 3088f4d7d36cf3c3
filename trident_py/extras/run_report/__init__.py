"""The report of a run that is over: one HTML file, made from its events."""
