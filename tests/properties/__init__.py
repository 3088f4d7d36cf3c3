"""Random topologies: both clusters against a naive reference."""
