"""The determinism check at run time: compares the output of operations with a second run in another process.

`recording` runs in the tasks and records the input and output of the operations in a sampled batch. `twin` is the other
process, with another hash seed and another `clock`. ``topology.determinism.check`` turns it on.
"""

from .recording import Checks
from .twin import Twin

__all__ = ["Checks", "Twin"]
