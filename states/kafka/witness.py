"""Whether a transaction was committed cleanly, as librdkafka itself tells.

When a connection breaks or an answer is late, librdkafka sends its requests again, and says nothing of it once that
has worked. But the first one may still be on its way: a late EndTxn ends whatever transaction is open when it arrives,
and a late TxnOffsetCommit puts an old mark over the new one, as long as the producer's epoch is the same. So after
such a commit the producer is not used again: the next one has a higher epoch, and what is late is refused.

Clean needs proof, which is in librdkafka's own lines (``debug`` = eos, broker): one EndTxn, answered without an error,
and no connection lost and no answer late. (What is sent again because a broker said so, is not on its way any more.)
Lines that this does not know make no proof. An error on a connection cannot be
had otherwise: of two in 30 s librdkafka reports the first one only, and that as information.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from trident_py.kafka.clients import librdkafka

_WANTED = ("eos", "broker")
_TROUBLE = ("FAIL", "REQTMOUT")
_LEVELS = (50, 50, 50, 40, 30, 20, 20, 10)  # of librdkafka's log_level
_USUAL = 6


class Witness:
    """The logger of one transactional producer. librdkafka calls `log` from within the producer's `poll`."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        """``settings``: the user's own, which say what of it is logged."""
        own = str(settings.get("debug", ""))
        self.settings = {"debug": ",".join(filter(None, (own, *_WANTED))), "log_level": 7}
        self._least = _LEVELS[int(settings.get("log_level", 7 if own else _USUAL))]
        self.begin()

    def begin(self) -> None:
        """A transaction begins."""
        self._answers: list[str] = []
        self.trouble = ""

    @property
    def clean(self) -> bool:
        """Whether the transaction that was just committed has left nothing behind."""
        return not self.trouble and len(self._answers) == 1 and "returned NO_ERROR " in self._answers[0]

    def log(self, level: int, form: str, facility: str, name: str, text: str) -> None:
        if facility == "ENDTXN":
            self._answers.append(text)
        elif (facility in _TROUBLE or level > logging.DEBUG) and not _is_first_address(text):
            self.trouble = self.trouble or text
        if level >= self._least:
            librdkafka.log(level, form, facility, name, text)


def _is_first_address(text: str) -> bool:
    """The connection to an address of ``bootstrap`` ends, as it does once the brokers are known. It carries nothing of
    a transaction."""
    return "/bootstrap: " in text and "(_DESTROY_BROKER)" in text
