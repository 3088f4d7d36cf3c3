"""What keeps Java's meaning where Python's differs: for the modules that `trident port` writes, and for ports by hand.

Each name stands for something of Java: `quotient` for ``/`` of whole numbers, `to_text` for ``String.valueOf``,
`HashMap` for the order in which Java's goes through its keys. Null is None, a ``char`` is a text of length 1.
"""

import types

from .collections import *  # noqa: F403
from .containers import *  # noqa: F403
from .dates import *  # noqa: F403
from .decimals import *  # noqa: F403
from .errors import *  # noqa: F403
from .iterators import *  # noqa: F403
from .json_values import *  # noqa: F403
from .logs import *  # noqa: F403
from .numbers import *  # noqa: F403
from .objects import *  # noqa: F403
from .queues import *  # noqa: F403
from .random import *  # noqa: F403
from .storm import *  # noqa: F403
from .streams import *  # noqa: F403
from .strings import *  # noqa: F403
from .trees import *  # noqa: F403
from .views import *  # noqa: F403

__all__ = sorted(
    name for name, value in globals().items() if not name.startswith("_") and not isinstance(value, types.ModuleType)
)
