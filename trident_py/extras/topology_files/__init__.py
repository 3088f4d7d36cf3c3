"""Whole topologies by file: `load` reads a trident.yml, which names spouts, operations, states and the conf."""
