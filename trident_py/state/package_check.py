"""Checks that Python finds our package ``states``. The name is common, so another package may shadow it."""

from __future__ import annotations

from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import find_spec


def check_states() -> None:
    """Raise ImportError if Python finds another ``states`` before the one that comes with this package.

    Called when `trident_py` is imported, on the driver and on workers. Imports nothing. It is fine if there is none.
    """
    try:
        spec = find_spec("states")
    except ValueError:  # a module without a spec, such as one made in code
        spec = None
    if spec is None or spec.origin is None or _is_ours(spec):
        return
    raise ImportError(
        f"trident_py comes with a package called states, but Python finds another one first: {spec.origin}. "
        "Rename that one, or start Python in another folder or with another PYTHONPATH, so that Python finds the one "
        "beside trident_py",
        name="states",
        path=spec.origin,
    )


def _is_ours(spec: ModuleSpec) -> bool:
    """Return whether this is our ``states``, by a module that only ours has. It may be in another folder or in a zip
    file."""
    folders = spec.submodule_search_locations
    return folders is not None and PathFinder.find_spec("states.loading", list(folders)) is not None
