"""Secrets stay out of errors and logs, by one list of names."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from syntax import nodes

from trident_py.model.secrets import hide, is_secret, redact_url, secrets_in

ROOT = Path(__file__).parent.parent
SOURCES = sorted(file for folder in ("trident_py", "states", "examples") for file in (ROOT / folder).rglob("*.py"))
WORD = re.compile("pass|pwd|secret|token|cred|jaas", re.IGNORECASE)
NAMES = [
    "password",
    "passwd",
    "PWD",
    "sslpassword",
    "sasl.password",
    "token",
    "delegation",
    "secret",
    "api_key",
    "ssl.key.pem",
    "sasl.jaas.config",
]


@pytest.mark.parametrize("name", NAMES)
def test_a_name_of_a_secret_is_known_wherever_it_stands(name: str) -> None:
    assert is_secret(name)
    assert redact_url(f"mysql://host/db?x=1&{name}=geheim&y=2") == f"mysql://host/db?x=1&{name}=***&y=2"
    assert hide(f"refused: {name}=geheim, x=1") == f"refused: {name}=***, x=1"


@pytest.mark.parametrize("name", ["key", "word", "compass_point"[:3], "n", "bypass"[:2]])
def test_a_common_word_is_no_secret(name: str) -> None:
    assert not is_secret(name)


URLS = [
    "mysql+pymysql://me:{}@host/db", "redis://:{}@host:1/0", "postgresql://me@host/db?password={}",
    "postgresql://host/db?user=me&sslpassword={}&x=1", "redis://host/0?p%61ssword={}", "mysql://me:{0}@host/db?passwd={0}",
]  # fmt: skip


@given(
    st.sampled_from(URLS), st.text("abcXYZ019/@:?#%+~!$*'()é", min_size=6, max_size=12).map(lambda text: f"Q{text}Q")
)
def test_no_part_of_a_password_is_shown_however_it_is_written(form: str, password: str) -> None:
    if "?" in form and ("?" in password or "@" in password or "#" in password):
        password = password.translate(str.maketrans("?@#", "xyz"))  # in a query these would end it
    url = form.format(password)
    for told in (redact_url(url), hide(f"cannot open {url} now")):
        assert password not in told
        assert password[-3:] not in told.replace("***", "")
        assert "host" in told
    assert password in secrets_in(url) or any(password in each for each in secrets_in(url))


@pytest.mark.parametrize("url", [
    "mysql+pymysql:/me:geheim@host/db", "mysql//me:geheim@host/db", "me:geheim@host", "mysql://me:geheim`host:1/db",
    "mysql://me/x:geheim@host", "mysql://me you:geheim@host", "redis://:geheim-host:1/0",
])  # fmt: skip
def test_a_mistyped_url_does_not_show_its_password(url: str) -> None:
    assert "geheim" not in redact_url(url) and any("geheim" in each for each in secrets_in(url))


@given(st.text("abc019-_.", min_size=1, max_size=8))
def test_a_url_without_secrets_is_shown_as_it_is(name: str) -> None:
    for url in (f"sqlite:///{name}.db", f"mysql://me@{name}:3306/db?charset=utf8", f"redis://{name}:1/0",
                "${{U:-mysql://h:${{PORT}}/x}}", f"{name}:1,{name}:2", f"redis://[::1]:1/{name}"):
        assert redact_url(url) == hide(url) == url


def constants(file: Path) -> Iterator[tuple[int, list[str]]]:
    """Texts that stand alone or in one tuple, list or set; no documentation."""
    docs = {id(node.value) for node in nodes(file) if isinstance(node, ast.Expr)}
    for node in nodes(file):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs:
            yield node.lineno, node.value.split("|") if "|" in node.value else []
        elif isinstance(node, ast.Tuple | ast.List | ast.Set):
            yield (
                node.lineno,
                [each.value for each in node.elts if isinstance(each, ast.Constant) and isinstance(each.value, str)],
            )


@pytest.mark.parametrize("file", SOURCES, ids=lambda file: str(file.relative_to(ROOT)))
def test_there_is_no_other_list_of_names(file: Path) -> None:
    if file.name == "secrets.py":
        return
    for line, texts in constants(file):
        found = [text for text in texts if len(text) < 40 and WORD.search(text) and not text.startswith("token_")]
        assert len(found) < 2, f"{file.name}:{line}: {found}: names of secrets stand in model/secrets.py alone"


@pytest.mark.parametrize("file", SOURCES, ids=lambda file: str(file.relative_to(ROOT)))
def test_a_url_is_shown_by_the_one_function_that_knows_all_secrets(file: Path) -> None:
    """SQLAlchemy's own form leaves out what stands before the host, and shows ``?password=``."""
    if "render_as_string" not in file.read_text():
        return
    through = {
        id(arg)
        for node in nodes(file)
        if isinstance(node, ast.Call) and "redact_url" in ast.dump(node.func)
        for arg in node.args
    }
    for node in nodes(file):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "render_as_string":
            whole = any(each.arg == "hide_password" and ast.unparse(each.value) == "False" for each in node.keywords)
            assert whole or id(node) in through, f"{file.name}:{node.lineno}"
