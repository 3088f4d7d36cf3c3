"""A gateway that kills itself at one of its steps: the real one, with its store and its producer wrapped.

python gateway_killing.py events.yaml, with GATEWAY_KILL_AT and GATEWAY_KILL_CALL (the how-manieth call of that step).
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

import uvicorn

from trident_py.extras.gateway.app import application_of, claims, kafka
from trident_py.extras.gateway.settings import read_settings

# step -> (object, method, kill before or after the call)
STEPS = {
    "received": ("store", "claim", "before"),
    "claimed": ("store", "claim", "after"),
    "produced": ("sink", "send", "after"),
    "delivered": ("store", "produced", "before"),
    "kept": ("store", "produced", "after"),
}


class Killing:
    """Passes everything on; at its step the process is gone."""

    def __init__(self, inner: Any, name: str) -> None:
        self._inner = inner
        owner, self._method, self._when = STEPS[os.environ["GATEWAY_KILL_AT"]]
        self._armed = owner == name
        self._left = int(os.environ["GATEWAY_KILL_CALL"])

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        return self._deadly(found) if self._armed and name == self._method else found

    def _deadly(self, call: Any) -> Any:
        def called(*args: Any) -> Any:
            self._left -= 1
            if self._left == 0 and self._when == "before":
                os.kill(os.getpid(), signal.SIGKILL)
            answer = call(*args)
            if self._left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return answer

        return called


if __name__ == "__main__":
    settings = read_settings(sys.argv[1])
    app = application_of(
        settings, lambda given: Killing(claims(given), "store"), lambda given: Killing(kafka(given), "sink")
    )
    uvicorn.run(app, host=settings.host, port=settings.port)
