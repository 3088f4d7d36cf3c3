"""What the command line passes on to Spark: where to run, its settings, and the files of the executors."""

from __future__ import annotations

import logging
import os
import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import click

from .targets import add_options

SUBMIT_ARGUMENTS = "PYSPARK_SUBMIT_ARGS"
_SHELL = "pyspark-shell"
log = logging.getLogger("trident_py")


@dataclass(frozen=True)
class SparkOptions:
    """The options of spark-submit that a command takes, under their names there."""

    master: str | None
    conf: tuple[str, ...]
    py_files: str | None
    archives: str | None
    properties_file: str | None

    def arguments(self) -> list[str]:
        """Return the arguments for spark-submit. Raises click.UsageError for a setting that is none of Spark's."""
        named = {
            "--master": self.master,
            "--py-files": self.py_files,
            "--archives": self.archives,
            "--properties-file": self.properties_file,
        }
        given = [word for option, value in named.items() if value is not None for word in (option, value)]
        settings = [word for setting in self.conf for word in ("--conf", _check_setting(setting))]
        return [*given, *settings]

    def within(self, folder: Path) -> SparkOptions:
        """Return the same with whole paths: relative ones begin in ``folder``, where the command was typed."""
        def whole(paths: str | None) -> str | None:
            return paths and ",".join(absolute(path, folder) for path in paths.split(","))

        files = whole(self.properties_file)
        return replace(self, py_files=whole(self.py_files), archives=whole(self.archives), properties_file=files)

    def apply(self, name: str, settings: Mapping[str, str] | None = None) -> None:
        """Give the options to the session that this process will make, and make ``--py-files`` importable here too.
        An option of the command line precedes one of ``settings``, this one of PYSPARK_SUBMIT_ARGS, and this one of
        spark-defaults.conf."""
        settings = settings or {}
        arguments = [*(word for pair in settings.items() for word in ("--conf", "=".join(pair))), *self.arguments()]
        if "PYSPARK_GATEWAY_PORT" in os.environ:
            if self.given:
                raise click.UsageError("spark-submit has started Spark already; give the options of Spark to it")
            if settings:
                log.warning("spark-submit has started Spark already, without %s; give it these", ", ".join(settings))
            return
        before = [word for word in shlex.split(os.environ.get(SUBMIT_ARGUMENTS, "")) if word != _SHELL]
        named = ["--conf", f"spark.app.name={name}"]
        os.environ[SUBMIT_ARGUMENTS] = shlex.join([*named, *before, *arguments, _SHELL])
        for file in (self.py_files or "").split(","):
            if file:
                sys.path.append(str(Path(file).absolute().parent if file.endswith(".py") else Path(file).absolute()))

    @property
    def given(self) -> bool:
        return any((self.master, self.conf, self.py_files, self.archives, self.properties_file))


spark_options = add_options(
    click.option("--master", metavar="URL", help="Where to run: spark://host:7077, yarn, k8s://..., local[4]."),
    click.option("--conf", metavar="KEY=VALUE", multiple=True, help="A setting of Spark, as for spark-submit."),
    click.option("--py-files", metavar="FILES", help="Your modules for the executors: .py and .zip, with commas."),
    click.option("--archives", metavar="FILES", help="Archives for the executors, as a packed environment: F#NAME."),
    click.option("--properties-file", metavar="FILE", help="A file with settings of Spark."),
)
"""A command gets them as ``**spark``: the fields of a `SparkOptions`."""


def absolute(path: str, folder: Path) -> str:
    """Return a path that does not depend on the current folder; a URI as it is."""
    return path if "://" in path or path.startswith("file:") or not path else str(folder / path)


def _check_setting(setting: str) -> str:
    key, equals, _ = setting.partition("=")
    if not equals or not key.startswith("spark."):
        raise click.UsageError(
            f"--conf {key}{equals and '=...'}: expected spark.KEY=VALUE; a setting of the topology goes with --set"
        )
    return setting
