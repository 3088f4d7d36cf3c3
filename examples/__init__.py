"""Ported topologies. Each module has ``build(...) -> TridentTopology`` and uses the public API only."""
