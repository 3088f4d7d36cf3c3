"""MySQL for tests comes from where the machine gets its packages, and changes nothing of the machine."""

from __future__ import annotations

import platform
from pathlib import Path

import pytest

from testbed import mysql_packages
from testbed.service import ServiceMissing
from testbed.sql_servers import MySql

APT = """#!/bin/sh
if [ "$1" = indextargets ]; then printf 'other http://other/debian\\n{codename} http://ours/debian\\n'; exit 0; fi
echo "$@" >>{log}
for word; do case "$word" in Dir::Etc::sourcelist=*) cat "${{word#*=}}" >>{log};; esac; done
case "$*" in *install*) echo 'E: no such package'; exit 100;; esac
"""


@pytest.fixture
def apt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What a stand-in for apt-get was told, with an empty cache and a codename of the machine's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    monkeypatch.setattr(platform, "freedesktop_os_release", lambda: {"VERSION_CODENAME": "bookworm"})
    (tmp_path / "apt-get").write_text(APT.format(codename="bookworm", log=tmp_path / "log"))
    (tmp_path / "apt-get").chmod(0o755)
    return tmp_path / "log"


def test_the_packages_come_from_the_site_of_the_machine(apt: Path) -> None:
    with pytest.raises(ServiceMissing, match=r"(?s)apt-get .*no such package"):
        MySql().start()
    told = apt.read_text()
    assert "URIs: http://ours/debian\nSuites: sid\n" in told
    assert f"--download-only --no-install-recommends {mysql_packages.PACKAGE}" in told
    assert told.count("Dir::Etc::sourceparts=- ") == told.count("Dir::State::status=") == 2


def test_what_could_not_be_fetched_leaves_nothing(apt: Path) -> None:
    with pytest.raises(ServiceMissing):
        mysql_packages.files()
    assert not mysql_packages.there() and list(mysql_packages.folder().parent.iterdir()) == []


def test_a_machine_without_apt_is_told_so(apt: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(ServiceMissing, match="apt-get is not installed"):
        MySql().start()
