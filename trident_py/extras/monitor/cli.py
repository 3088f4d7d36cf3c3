"""The commands `trident status URL` and `trident top URL`: what the page of a run shows, in a terminal; and `trident
metrics`, what watches its metrics.

Exit codes: 0 the run goes on; 1 nobody answers, or the run has failed or stands still; 2 the command is wrong.
"""

from __future__ import annotations

import json
import os
import pkgutil
import sys
import time
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from http import HTTPStatus
from http.client import HTTPException
from itertools import chain
from operator import itemgetter
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

import click
from rich.console import Console
from rich.live import Live
from rich.text import Text

from ...cli.display import terminable
from ...model.secrets import hide, redact_url, secrets_in
from ...report.guarantees.table import align
from . import TOKEN

SECONDS = 10.0
BAD = ("failed", "stuck", "replaying", "waiting")
FAILURES = ("replay", "task-retry", "poison", "failed")
SHOWN = 3  # of them


@click.command()
@click.argument("url")
@click.option("--json", "as_json", is_flag=True, help="Print what the run's interface says.")
def status(url: str, as_json: bool) -> None:
    """Show how a run stands: what holds it up, its spouts and states, and what failed last.

    URL is that of `trident run --http`. A token is taken from TRIDENT_HTTP_TOKEN.
    """
    found = _ask(url)
    print(json.dumps(found, indent=2) if as_json else "\n".join(lines(found)))
    sys.exit(1 if found["diagnosis"]["kind"] in BAD else 0)


@click.command()
@click.argument("url")
@click.option("--every", type=click.FloatRange(min=0.1), default=2.0, show_default=True, help="Seconds.")
def top(url: str, every: float) -> None:
    """Show the same again and again, until Ctrl-C."""
    with terminable(), Live(console=Console(highlight=False), auto_refresh=False) as live:
        try:
            while True:
                live.update(Text("\n".join(lines(_ask(url)))), refresh=True)
                time.sleep(every)
        except KeyboardInterrupt:
            return


@click.group()
def metrics() -> None:
    """Print what watches the metrics of runs: rules for Prometheus, a dashboard for Grafana."""


@metrics.command()
def rules() -> None:
    """Print rules for Prometheus: what to page somebody for, and what to do then."""
    _print_file("prometheus-rules.yml")


@metrics.command()
def dashboard() -> None:
    """Print a dashboard for Grafana, as JSON to import."""
    _print_file("grafana-dashboard.json")


def _print_file(name: str) -> None:
    click.echo((pkgutil.get_data(__package__, name) or b"").decode(), nl=False)


def _ask(url: str) -> dict[str, Any]:
    """Return the topology of a run, with its last failures. Ends the command if nobody answers."""
    base = url if "://" in url else f"http://{url}"
    if "@" in base:
        print(f"error: {redact_url(url)}: a token belongs into {TOKEN}, not into the URL", file=sys.stderr)
        sys.exit(2)
    try:
        run = _get(base, "/api/v1/topology/summary")["topologies"][0]["id"]
        found = [_get(base, f"/api/events?event={kind}&limit={SHOWN}")["events"] for kind in FAILURES]
        failures = sorted(chain.from_iterable(found), key=itemgetter("number"))
        return {**_get(base, f"/api/v1/topology/{run}"), "failures": failures[-SHOWN:]}
    except HTTPError as error:
        hint = f"; it asks for the token of {TOKEN}" if error.code == HTTPStatus.UNAUTHORIZED else ""
        print(f"error: {redact_url(url)} answers {error.code} {error.reason}{hint}", file=sys.stderr)
    except (OSError, HTTPException, ValueError, LookupError, TypeError) as error:
        why = error.reason if isinstance(error, URLError) else f"{type(error).__name__}: {error}"
        told = hide(str(why), secrets_in(url))
        print(f"error: {redact_url(url)} does not answer as a run does ({told}). Is the driver alive? For a dead one: "
              "trident txid ls", file=sys.stderr)  # fmt: skip
    sys.exit(1)


def _get(base: str, path: str) -> dict[str, Any]:
    request = Request(f"{base.rstrip('/')}{path}")  # noqa: S310  the user's own address
    if token := os.environ.get(TOKEN):
        request.add_header("Authorization", f"Basic {b64encode(f':{token}'.encode()).decode()}")
    with urlopen(request, timeout=SECONDS) as answer:  # noqa: S310
        found: dict[str, Any] = json.load(answer)
        return found


def lines(found: Mapping[str, Any]) -> Iterator[str]:
    """Yield what the page shows, as text. Times are those of the driver's clock, as in its sentences."""
    yield f"{found['name']}: {found['status']}, up {found['uptime']}, at {_clock(found['time'])} (driver)"
    yield f"  {found['diagnosis']['sentence']}"
    yield from _table(
        ("component", "txid", "attempts", "replays", "last commit"),
        [(each["component"], each["txid"], each["attempts"], each["outcomes"].get("replay", 0),
          _clock(each["lastCommit"])) for each in found["components"]],
    )  # fmt: skip
    yield from _table(
        ("spout", "type", "tuples", "tuples/s", "backlog", "oldest waits"),
        [(each["spoutId"], each["type"], f"{each['emitted']:,}", f"{each['rate']:,.0f}",
          f"{each['backlog']:,}" if "backlog" in each else None,
          f"{each['oldestSeconds']:,.0f} s" if each.get("oldestSeconds") else None)
         for each in found["spouts"]],
    )  # fmt: skip
    yield from _table(
        ("state", "kind", "last txid", "generation", "rows", "size", "guarantee"),
        [(each["state"], each["kind"], each["lastTxid"], each["generation"], f"{each['rows']:,}",
          None if each["size"] is None else f"{each['size'] / 1000:,.0f} kB", each["guarantee"])
         for each in found["states"]],
    )  # fmt: skip
    for event in found["failures"]:
        yield f"{_clock(event['time'])} {event['event']}: txid {event['txid']}, attempt {event['attempt']}: " + str(
            event["reason"]
        )


def _clock(moment: str | None) -> str | None:
    return moment and datetime.fromisoformat(moment).isoformat(" ", "seconds")


def _table(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> list[str]:
    """Return the rows under their heads; nothing without rows."""
    return align([head, *(["-" if cell is None else str(cell) for cell in row] for row in rows)]) if rows else []
