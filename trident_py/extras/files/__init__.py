"""The states in files. `states.files` has the public names."""

from states.rows import RowUpdater

from .formats import DelimitedRecordFormat, RecordFormat
from .state import FileState
