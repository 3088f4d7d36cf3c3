"""Topology files (docs/topology_files.md): the public names of the extra ``topology_files``."""

from .entry_points import names_of

__getattr__ = names_of(__name__, "topology_files")
