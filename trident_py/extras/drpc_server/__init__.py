"""DRPC over HTTP: a server with Storm's interface, which starts with a run, and its client."""
