"""Whole topologies by file: `load` reads a trident.yml, which names spouts, operations, states and the conf.

Its public names are those of `file`, which users import from `trident_py.topology_files`.
"""
