"""The check at run time: what operations emit is compared with a second run of them, in another process.

`recording` is in the tasks: it notes what the operations of a sampled batch get and emit. `twin` is the other process,
with another hash seed and another `clock`. Opt-in by ``topology.determinism.check``.
"""

from .recording import Checks
from .twin import Twin

__all__ = ["Checks", "Twin"]
