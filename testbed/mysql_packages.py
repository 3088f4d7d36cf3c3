"""MySQL's server for tests: Debian's packages of it, unpacked in the user's cache. Nothing is installed; no root.

    python -m testbed.mysql_packages           fetches it if it is missing and prints its folder
    python -m testbed.mysql_packages --there   reports by its exit code whether it exists

Only Debian's unstable suite has MySQL. `apt-get` downloads the server and all libraries that it needs, its C library
too, into ``~/.cache/trident_py/mysql-sid``, from where the machine gets its own packages. It runs with its own loader.
"""

from __future__ import annotations

import platform
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

from .kafka_jars import cached, fetch_once
from .service import ServiceMissing

SUITE = "sid"
PACKAGE = "mysql-server-core"
KEYS = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
SETTINGS = ("--disable-log-bin", "--innodb-redo-log-capacity=8M")
_NEW = "new-data"
# The server needs Perl only for a script that no test runs.
_HAS_PERL = """Package: perl
Status: install ok installed
Architecture: all
Multi-Arch: allowed
Version: 9999
Maintainer: none
Description: none
"""


def folder() -> Path:
    """Returns the folder of the packages' files, which may not exist yet."""
    return cached(f"mysql-{SUITE}")


def there() -> bool:
    """Whether the folder holds the server and the data of a new one."""
    return (folder() / _NEW).is_dir()


def files() -> Path:
    """Returns the folder; fetches it first if it is missing (some 50 MB). Raises ServiceMissing."""
    wanted = folder()
    fetch_once(wanted, _unpack)
    if not there():
        raise ServiceMissing(f"{wanted} has no MySQL server: remove the folder, and it is fetched again")
    return wanted


def command(root: Path) -> list[str]:
    """Returns the start of the server's command line, for packages unpacked below ``root``."""
    (loader, *_), (libc, *_) = root.glob("usr/lib*/ld-linux*.so.*"), root.glob("usr/lib/*/libc.so.6")
    return [
        str(loader), "--library-path", str(libc.parent), f"{root}/usr/sbin/mysqld", "--no-defaults",
        f"--basedir={root}/usr", f"--lc-messages-dir={root}/usr/share/mysql", "--secure-file-priv=NULL",
        f"--character-sets-dir={root}/usr/share/mysql/charsets", f"--plugin-dir={root}/usr/lib/mysql/plugin",
    ]  # fmt: skip


def new_data(root: Path) -> Path:
    """Returns the data folder of a new server, with its keys, to be copied: it takes three seconds to make."""
    return root / _NEW


def _unpack(into: Path) -> None:
    into.mkdir()
    for package in _downloaded(into / "apt"):
        _run("dpkg", "-x", str(package), str(into))
    shutil.rmtree(into / "apt")
    for unread in ("doc", "locale", "man"):
        shutil.rmtree(into / "usr/share" / unread, ignore_errors=True)
    _run(*command(into), *SETTINGS, "--initialize-insecure", "--user=root", f"--datadir={new_data(into)}")
    (new_data(into) / "auto.cnf").unlink()  # the server's UUID


def _downloaded(apt: Path) -> list[Path]:
    """Downloads the packages. apt's lists, cache and sources are below a folder of ours; the machine's stay as are."""
    for part in ("lists/partial", "archives/partial"):
        (apt / part).mkdir(parents=True)
    (apt / "status").write_text(_HAS_PERL)
    signed = f"Signed-By: {KEYS}\n" if KEYS.exists() else ""
    (apt / "debian.sources").write_text(
        f"Types: deb\nURIs: {_site()}\nSuites: {SUITE}\nComponents: main\nTargets: Packages\n{signed}"
    )
    own = {
        "Dir::State": apt, "Dir::State::lists": apt / "lists", "Dir::State::status": apt / "status", "Dir::Cache": apt,
        "Dir::Cache::archives": apt / "archives", "Dir::Etc::sourcelist": apt / "debian.sources",
        "Dir::Etc::sourceparts": "-", "Debug::NoLocking": 1, "APT::Sandbox::User": "root",
    }  # fmt: skip
    options = [word for name, value in own.items() for word in ("-o", f"{name}={value}")]
    run = partial(_run, "apt-get", "-qq", *options)
    run("update")
    run("install", "-y", "--download-only", "--no-install-recommends", PACKAGE)
    return sorted((apt / "archives").glob("*.deb"))


def _site() -> str:
    """Where this machine gets Debian's packages."""
    listed = _run("apt-get", "indextargets", "--format", "$(RELEASE) $(SITE)", "Created-By: Packages").split("\n")
    codename = platform.freedesktop_os_release().get("VERSION_CODENAME", "")
    sites = [line.split(maxsplit=1) for line in listed if line]
    if not sites:
        raise ServiceMissing("MySQL comes from where apt gets its packages, and apt has no sources on this machine")
    return next((site for release, site in sites if release == codename), sites[0][1])


def _run(*words: str) -> str:
    if shutil.which(words[0]) is None:
        raise ServiceMissing(f"MySQL for tests comes in Debian's packages, and {words[0]} is not installed")
    done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode != 0:
        raise ServiceMissing(f"MySQL could not be fetched: {' '.join(words)}:\n{(done.stdout + done.stderr)[-2000:]}")
    return done.stdout


if __name__ == "__main__":
    if "--there" in sys.argv:
        sys.exit(0 if there() else 1)
    try:
        print(files())
    except ServiceMissing as error:
        sys.exit(f"error: {error}")
