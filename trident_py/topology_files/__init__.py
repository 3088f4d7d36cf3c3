"""Whole topologies by file: `load` reads a trident.yml, which names spouts, operations, states and the conf.

The package is imported on its own, because `import trident_py` does not load YAML.
"""

from .file import Defined, Draft, load
from .sections import NAMES, find_file, is_topology

__all__ = ["NAMES", "Defined", "Draft", "find_file", "is_topology", "load"]
