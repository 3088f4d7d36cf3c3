"""Who may call a function over HTTP: bearer tokens, and an access list by function."""

from __future__ import annotations

import hashlib
import hmac
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ...documents import Document, read
from ...errors import DefinitionError
from .client import TOKEN

ACL, TOKENS, USERS = "drpc.authorizer.acl", "drpc.tokens", "client.users"


class Refused(Exception):
    """A caller who may not call. ``status``: 401 without a valid token, 403 if the function is not the caller's."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


@dataclass(frozen=True)
class Access:
    """The callers by their tokens, and the functions of each. ``acl`` None: every caller may call everything.

    Tokens are kept as digests.
    """

    callers: Mapping[bytes, str] = field(default_factory=dict, repr=False)
    acl: Mapping[str, frozenset[str]] | None = None

    @property
    def is_open(self) -> bool:
        """Whether no caller needs a token."""
        return not self.callers

    def check(self, authorization: str, function: str) -> None:
        """Check the header Authorization of a call. Raises Refused."""
        caller = self._caller(authorization)
        if self.acl is not None and caller not in self.acl.get(function, ()):
            raise Refused(403, f"{caller} may not call the function {function!r}")

    def _caller(self, authorization: str) -> str:
        if self.is_open:
            return ""
        kind, _, token = authorization.partition(" ")
        given, found = _digest(token.strip()), ""
        for digest, name in self.callers.items():
            if hmac.compare_digest(digest, given):
                found = name
        if kind.lower() != "bearer" or not found:
            raise Refused(401, "the call needs the header Authorization: Bearer TOKEN, with a token of this server")
        return found


def access_of(file: str | None) -> Access:
    """Return the access list of a file, else the one token of TRIDENT_DRPC_TOKEN, else an open door.

    Raises DefinitionError for a file that cannot be used, or in which nobody can call.
    """
    if file is None:
        token = os.environ.get(TOKEN, "")
        return Access({_digest(token): "the caller"}) if token else Access()
    document = read(file, "of who may call which DRPC function", f"{TOKENS}:")
    found = _read(document)
    document.stop()
    return found


def _read(document: Document) -> Access:
    data = document.data
    if not isinstance(data, dict) or set(data) != {TOKENS, ACL}:
        document.add((), f"the file has two parts: {TOKENS} (a token for each user) and {ACL} (users by function)")
        return Access()
    tokens, acl = data[TOKENS], data[ACL]
    if not isinstance(tokens, dict) or not tokens:
        document.add((TOKENS,), "names a token for each user, as in alice: ${ALICE_TOKEN}")
        tokens = {}
    callers: dict[bytes, str] = {}
    for user, token in tokens.items():
        if not isinstance(token, str) or not token:
            document.add((TOKENS, user), "a token is a text that is not empty")
        elif callers.setdefault(_digest(token), user) != user:
            document.add((TOKENS, user), f"this is also the token of {callers[_digest(token)]}")
    if not isinstance(acl, dict):
        document.add((ACL,), f"names the users of each function, as in words: {{{USERS}: [alice]}}")
        acl = {}
    return Access(callers, {function: _users(document, function, entry, tokens) for function, entry in acl.items()})


def _users(document: Document, function: str, entry: object, tokens: Mapping[str, object]) -> frozenset[str]:
    """Return the users of one function. Storm's ``invocation.user``, who runs the topology, is accepted and not
    used."""
    where = (ACL, function)
    if not isinstance(entry, dict) or not set(entry) <= {USERS, "invocation.user"}:
        document.add(where, f"has the key {USERS}, a list of users")
        return frozenset()
    users = entry.get(USERS, [])
    users = [users] if isinstance(users, str) else users
    if not isinstance(users, list):
        document.add((*where, USERS), "is a list of users")
        return frozenset()
    for user in users:
        if not isinstance(user, str) or user not in tokens:
            document.add((*where, USERS), f"{user!r} has no token in {TOKENS}")
    return frozenset(map(str, users))


def check_host(host: str, access: Access) -> None:
    """Raise DefinitionError if other machines could call without a token."""
    if access.is_open and host not in ("127.0.0.1", "::1", "localhost"):
        raise DefinitionError(
            f"drpc.http.host is {host}, so other machines could call every function without a token. Set {TOKEN} in "
            f"the environment, or an access list (drpc.authorizer.acl.filename, {Path('drpc-auth-acl.yaml')}); or "
            "serve this machine only: 127.0.0.1"
        )


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
