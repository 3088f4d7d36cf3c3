"""States defined in a YAML file: `load`, the file's JSON `schema`, and the base class for authors of types."""

from trident_py.documents.models import Count

from ..diagnostics import Finding
from .loader import Look, define, load, look, look_at, schema
from .settings import FieldList, Installed, StateSettings, find_types
