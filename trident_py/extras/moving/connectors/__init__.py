"""Storm's connectors by their names, for translated topologies."""
