"""A page, metrics and health of a run over HTTP: what it does, what holds it up, and a few actions."""

TOKEN = "TRIDENT_HTTP_TOKEN"  # noqa: S105  the variable's name
