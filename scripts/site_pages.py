"""MkDocs hook: the pages of the site that are not in docs/, and links that lead out of it."""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parent.parent
PAGES = {"README.md": "index.md", "CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}
PACKAGES = {
    "trident_py": "trident_py",
    "operations": "trident_py.operations",
    "spouts": "trident_py.spouts",
    "state": "trident_py.state",
    "states": "states",
    "testing": "trident_py.testing",
}
LINK = re.compile(r"\[([^\]]*)\]\((?!\w+:|#)([^)#\s]+)(#[^)]*)?\)")


def on_files(files: Files, config: Any) -> Files:
    """Add the README as the first page, the other pages of the root, and a reference page per public package."""
    for name, page in PAGES.items():
        files.append(File.generated(config, page, content=rebase((ROOT / name).read_text(), name)))
    for page, package in PACKAGES.items():
        text = f"# {package}\n\n::: {package}\n"
        files.append(File.generated(config, f"reference/{page}.md", content=text))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Called for each page: a link to a file of the source becomes its text."""
    return rebase(markdown, f"docs/{page.file.src_uri}") if page.file.generated_by is None else markdown


def rebase(markdown: str, name: str) -> str:
    """Return the page of this name, from the root of the repository, with the links that it has on the site."""
    folder = posixpath.dirname(name)

    def target(match: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join(folder, match[2]))
        page = PAGES.get(path, path.removeprefix("docs/"))
        link = posixpath.relpath(page, folder.removeprefix("docs").lstrip("/") or ".")
        return match[1] if page == path else f"[{match[1]}]({link}{match[3] or ''})"

    return LINK.sub(target, markdown)
