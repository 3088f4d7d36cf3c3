"""Checks that Python finds our package ``states``. The name is common, so another package may shadow it."""

from __future__ import annotations

from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import find_spec


def check_states() -> None:
    """Raises ImportError if Python finds another ``states`` before the one that comes with this package.

    Called when `trident_py` is imported, on the driver and on workers. Imports nothing. It is fine if there is none.
    """
    try:
        found = find_spec("states")
    except ValueError:  # a module without a spec, such as one made in code
        found = None
    if found is None or found.origin is None or _is_ours(found):
        return
    raise ImportError(
        f"trident_py comes with a package called states, but Python finds another one first: {found.origin}. "
        "Rename that one, or start Python in another folder or with another PYTHONPATH, so that the one beside "
        "trident_py is found",
        name="states",
        path=found.origin,
    )


def _is_ours(found: ModuleSpec) -> bool:
    """Whether this is our ``states``, by a module that only ours has. It may be in another folder or in a zip file."""
    folders = found.submodule_search_locations
    return folders is not None and PathFinder.find_spec("states.loading", list(folders)) is not None
