"""The readers of topics are modules of the Kafka tests; processes on the hosts find them by PYTHONPATH."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "kafka"))
