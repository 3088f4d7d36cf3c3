"""`trident port`: what the runtime makes of values is what Java makes of them, and what a piece of Java becomes."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from trident_py.errors import DefinitionError
from trident_py.extras.moving import java
from trident_py.extras.moving.port.cli import port
from trident_py.extras.moving.port.modules import translate_files

RESULTS = Path(__file__).parent / "semantics" / "results.jsonl"
INTS = st.integers(-(2**31), 2**31 - 1)


def parsed(text: str) -> Any:
    try:
        return java.parse_int(text)
    except ValueError as error:
        return str(error)


def drawn(seed: int) -> list[Any]:
    random = java.Random(seed)
    found: list[Any] = []
    for _ in range(20):
        found += [random.nextInt(), random.nextInt(10), random.nextInt(16), random.nextLong(), random.nextDouble()]
        found += [random.nextBoolean(), random.nextGaussian()]
    return found


def shuffled(seed: int) -> list[int]:
    values = [1, 2, 3, 4, 5, 6, 7]
    java.shuffle(values, java.Random(seed))
    return values


def counted(words: list[str]) -> str:
    counts = java.HashMap()
    for word in words:
        java.merge(counts, word, 1, lambda a, b: a + b)
    return java.to_text(counts)


def formatting(pattern: str) -> Callable[..., str]:
    return lambda *values: java.format_text(pattern, *values)


COMPUTE: dict[str, Callable[..., Any]] = {
    "to_int *": lambda a, b: java.to_int(a * b),
    "shift_right": lambda a, b: java.shift_right(a, b, 32),
    "split ,": lambda text: java.split(text, ","),
    "split ,-1": lambda text: java.split(text, ",", -1),
    "split empty": lambda text: java.split(text, ""),
    "%.2f": formatting("%.2f"),
    "%,10.1f": formatting("%,10.1f"),
    "%e": formatting("%e"),
    "%-6s|%6.3s": lambda text: java.format_text("%-6s|%6.3s", text, text),
    "parse_int": parsed,
    "replace_all": lambda text: java.replace_all(text, "([a-z])([a-z])", "$2$1"),
    "HashSet": lambda words: list(java.HashSet(words)),
    "HashMap": counted,
    "Random": drawn,
    "shuffle": shuffled,
}


def test_the_runtime_computes_what_java_computed() -> None:
    wrong = []
    for line in RESULTS.read_text().splitlines():
        what, arguments, expected = json.loads(line)
        compute = COMPUTE.get(what) or getattr(java, what)
        found = compute(*arguments)
        if repr(found) != repr(expected):
            wrong.append((what, arguments, found, expected))
    assert wrong == []


@given(INTS, INTS.filter(bool))
def test_quotient_and_remainder_belong_together(a: int, b: int) -> None:
    assert java.quotient(a, b) * b + java.remainder(a, b) == a
    assert abs(java.remainder(a, b)) < abs(b)


@given(st.integers())
def test_what_wraps_is_the_same_modulo_the_range(value: int) -> None:
    assert -(2**31) <= java.to_int(value) < 2**31
    assert (java.to_int(value) - value) % 2**32 == 0


@given(st.floats(allow_nan=False))
def test_the_text_of_a_double_is_read_back(value: float) -> None:
    assert java.parse_double(java.to_text(value)) == value


@given(st.dictionaries(st.text(), st.integers(), max_size=40), st.text())
def test_a_hash_map_is_a_dict(items: dict[str, int], key: str) -> None:
    made = java.HashMap(items)
    assert dict(made) == items and made.get(key) == items.get(key) and len(made) == len(items)
    assert sorted(made.items()) == sorted(items.items())


@given(st.lists(st.integers()), st.integers())
def test_a_tree_set_is_sorted(values: list[int], value: int) -> None:
    tree = java.TreeSet(values)
    assert list(tree) == sorted(set(values))
    assert tree.ceiling(value) == min((one for one in values if one >= value), default=None)
    assert tree.lower(value) == max((one for one in values if one < value), default=None)


HEAD = """
import java.util.*;
import java.util.stream.*;
import org.apache.storm.trident.operation.*;
import org.apache.storm.trident.tuple.*;
import org.apache.storm.tuple.*;
"""


def translated(folder: Path, body: str, name: str = "Piece") -> Any:
    """The module of a class with this body, with its report."""
    file = folder / f"{name}.java"
    file.write_text(f"{HEAD}\npublic class {name} {{\n{body}\n}}\n")
    return translate_files([file])[0]


def run(folder: Path, body: str, call: str) -> Any:
    """What a static method of the class returns."""
    module = translated(folder, body)
    assert module.report.findings == [], module.text
    names: dict[str, Any] = {"__name__": "piece"}
    exec(compile(module.text, "piece", "exec", dont_inherit=True), names)  # the translation of the Java in this file
    return eval(call, names)


PIECES = {
    "whole numbers are divided towards zero": ("static int f(int a) { return a / 2 % 3; }", "f(-9)", -1),
    "products wrap": ("static int f(int a) { return a * a + 1; }", "f(65536)", 1),
    "hash codes wrap": (
        'static int f(String s) { int h = 17; for (char c : s.toCharArray()) { h = 31 * h + c; } return h; }',
        "f('hello world')", -306455021,
    ),
    "an int becomes a double": ("static double f(int a) { double x = a; return x; }", "str(f(3))", "3.0"),
    "chars are numbers in sums": ("static char f(char c) { return (char) (c + 1); }", "f('a')", "b"),
    "a text is joined with what is no text": (
        'static String f(Integer n, double d, boolean b) { return "n=" + n + ", " + d + b + \'!\'; }',
        "f(None, 1e7, True)", "n=null, 1.0E7true!",
    ),
    "a value is used and counted up": (
        "static int f() { int[] a = new int[3]; int i = 0; a[i++] = 5; a[i++] = 6; a[1]++; "
        "return a[0] * 10 + a[1] + i; }",
        "f()", 59,
    ),
    "a loop with continue and another step": (
        "static int f() { int n = 0; for (int i = 0; i < 10; i += 2) { if (i == 4) { continue; }"
        " n += i; i += i == 6 ? 1 : 0; } return n; }",
        "f()", 17,
    ),
    "a jump to a label": (
        "static int f() { int n = 0; outer: for (int i = 0; i < 3; i++) { for (int k = 0; k < 3; k++) {"
        " if (k == 2) continue outer; if (i == 2) break outer; n += 10 * i + k; } } return n; }",
        "f()", 22,
    ),
    "a switch": (
        'static String f(int n) { switch (n) { case 1: case 2: return "few"; default: break; }'
        ' return n > 5 ? "many" : "some"; }',
        "[f(2), f(4), f(9)]", ["few", "some", "many"],
    ),
    "a switch with a value": (
        'static int f(String s) { int n = switch (s) { case "a", "b" -> 1; '
        'default -> { int k = 2; yield k * 2; } }; return n; }',
        "[f('a'), f('x')]", [1, 4],
    ),
    "streams": (
        'static String f(List<String> w) { return w.stream().filter(x -> x.length() > 1).map(String::toUpperCase)'
        '.sorted().collect(Collectors.joining("+")); }',
        "f(['be', 'a', 'an'])", "AN+BE",
    ),
    "lambdas in a loop keep its variable": (
        "static int f() { List<java.util.function.IntUnaryOperator> all = new ArrayList<>();"
        " for (int i = 0; i < 3; i++) { int k = i; all.add(x -> x + k); } return all.get(0).applyAsInt(10); }",
        "f()", 10,
    ),
    "exceptions": (
        'static String f(String s) { try { return "" + Integer.parseInt(s); }'
        ' catch (NumberFormatException e) { return e.getMessage(); }'
        ' finally { System.out.print(""); } }',
        "f('1x')", 'For input string: "1x"',
    ),
    "records and enums": (
        "enum Kind { LOW, HIGH { int f() { return 9; } }; int f() { return ordinal(); } }\n"
        "record Pair(String a, int b) { int sum() { return a.length() + b; } }\n"
        'static String f() { Pair p = new Pair("ab", 3); '
        'return p + "/" + p.sum() + Kind.HIGH.f() + Kind.valueOf("LOW").f(); }',
        "f()", "Pair[a=ab, b=3]/590",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PIECES)
def test_a_piece_of_java_means_the_same(name: str, tmp_path: Path) -> None:
    body, call, expected = PIECES[name]
    assert run(tmp_path, body, call) == expected


REFUSED = {
    "an unknown class": ("void f() { new Unknown().go(); }", "new Unknown"),
    "an unknown method": ('int f(String s) { return s.offsetByCodePoints(0, 1); }', "offsetByCodePoints"),
    "texts compared by identity": ("boolean f(String a, String b) { return a == b; }", "by identity"),
    "an Integer that could be a Long": ("boolean f(Object o) { return o instanceof Integer; }", "Integer and a Long"),
    "a case that falls through": (
        "int f(int n) { int r = 0; switch (n) { case 1: r = 1; case 2: r += 2; } return r; }", "falls through",
    ),
    "a jump out of a block": (
        "int f() { int n = 1; out: { if (n > 0) { break out; } n = 9; } return n; }", "something else than a loop",
    ),
    "a jump out of a block from its loop": (
        "int f() { int n = 0; out: { while (true) { if (n++ > 2) { break out; } } } return n; }",
        "something else than a loop",
    ),
    "a switch behind something that is done first": (
        "int n; int go() { return ++n; } int f() { return go() + switch (n) { case 1 -> 5; default -> 6; }; }",
        "behind 'go()'",
    ),
    "a switch that may not be reached": (
        "int n; int f(boolean b) { return b ? switch (n++) { case 1 -> 5; default -> 6; } : 7; }", "only one way",
    ),
    "a switch behind and": (
        "int n; boolean f(boolean b) { return b && switch (n++) { case 1 -> true; default -> false; }; }",
        "only one way",
    ),
    "a short of an array that is used and counted up": ("int f(short[] a) { return a[0]++; }", "for short"),
    "a name of nobody": ("int f() { return nowhere; }", "nowhere"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_certain_is_not_translated(name: str, tmp_path: Path) -> None:
    body, reason = REFUSED[name]
    module = translated(tmp_path, body)
    [finding] = module.report.findings
    assert reason in finding.reason and finding.section
    assert f'raise NotImplementedError("Piece.java:{finding.line}: ' in module.text.replace("(\n            ", "(")
    compile(module.text, "piece", "exec")


def test_a_topology_that_main_defines_gets_a_build(tmp_path: Path) -> None:
    body = """
    public static void main(String[] args) {
        FixedBatchSpout spout = new FixedBatchSpout(new Fields("a"), 1, new Values(1));
        TridentTopology topology = new TridentTopology();
        topology.newStream("s", spout).each(new Fields("a"), new Debug());
        Config conf = new Config();
        new LocalCluster().submitTopology("t", conf, topology.build());
    }"""
    imports = "import org.apache.storm.*; import org.apache.storm.trident.*; import org.apache.storm.trident.testing.*;"
    file = tmp_path / "Shop.java"
    file.write_text(f"{HEAD}{imports}\nimport org.apache.storm.trident.operation.builtin.Debug;\nclass Shop {{{body}}}")
    [module] = translate_files([file])
    assert module.report.findings == []
    names: dict[str, Any] = {"__name__": "shop"}
    exec(compile(module.text, "shop", "exec", dont_inherit=True), names)
    assert "Debug" in names["build"]().explain()


def test_the_command_reports_what_is_left(tmp_path: Path) -> None:
    file = tmp_path / "Left.java"
    file.write_text("class Left { int f(String s) { int n = 1; return s.indent(n); } }")
    result = CliRunner().invoke(port, [str(file), "-o", str(tmp_path / "out")])
    assert result.exit_code == 1
    assert result.output.splitlines()[0] == "Left.java -> left.py: 1 of 2 statements (50%)"
    assert "Left.java:1: indent() of String" in result.output and "see docs/" in result.output
    as_json = CliRunner().invoke(port, [str(file), "-o", str(tmp_path / "out"), "--json"])
    assert [one["line"] for one in json.loads(as_json.output)[0]["findings"]] == [1]
    assert (tmp_path / "out" / "left.py").exists()


def test_a_module_that_was_changed_by_hand_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    for place, body in (("Tool.java", "1"), ("a/Tool.java", "2")):
        (tmp_path / place).write_text(f"class Tool {{ int f() {{ return {body}; }} }}")
    out, command = tmp_path / "out", [str(tmp_path / "Tool.java"), "-o", str(tmp_path / "out")]
    assert [CliRunner().invoke(port, command).exit_code for _ in range(2)] == [0, 0]  # the same again changes nothing
    (out / "tool.py").write_text("mine")
    refused = CliRunner().invoke(port, command)
    assert refused.exit_code == 2 and "tool.py is there and differs" in refused.stderr
    both = CliRunner().invoke(port, [str(tmp_path), "-o", str(out), "--force"])
    assert both.exit_code == 2 and "both become tool.py" in both.stderr
    assert (out / "tool.py").read_text() == "mine"
    assert CliRunner().invoke(port, [*command, "--force"]).exit_code == 0 and (out / "tool.py").read_text() != "mine"


def test_a_file_that_is_no_java_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "Broken.java"
    file.write_text("class Broken { int f( }")
    with pytest.raises(DefinitionError, match=r"Broken\.java:1 is not Java"):
        translate_files([file])


def test_a_foreign_class_with_a_name_of_storm_is_not_taken_for_it(tmp_path: Path) -> None:
    file = tmp_path / "Foreign.java"
    file.write_text("import com.shop.Split; class Foreign { Object f() { return new Split(); } }")
    [module] = translate_files([file])
    assert "com.shop.Split" in module.report.findings[0].reason


SPLITS = {
    "Storm's, imported": ("import org.apache.storm.trident.testing.Split;", "new Split()", "trident_py.testing"),
    "Storm's, of a whole package": ("import org.apache.storm.trident.testing.*;", "new Split()", "trident_py.testing"),
    "Storm's, as a parent": (
        "import org.apache.storm.trident.testing.Split;", "new Split() { public void cleanup() { } }",
        "trident_py.testing",
    ),
    "the other file's": ("", "new Sentences.Split()", "sentences"),
    "the other file's, imported": ("import shop.Sentences.Split;", "new Split()", "sentences"),
    "the other file's, with all of its class": ("import shop.Sentences.*;", "new Split()", "sentences"),
    "the other file's, as a static member": ("import static shop.Sentences.Split;", "new Split()", "sentences"),
    "the other file's, beside Storm's": (
        "import org.apache.storm.trident.testing.*;", "new Sentences.Split()", "sentences",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SPLITS)
def test_a_name_means_the_class_that_the_file_imports(name: str, tmp_path: Path) -> None:
    imported, made, module_name = SPLITS[name]
    (tmp_path / "Sentences.java").write_text("package shop; class Sentences { static class Split { int f; } int g; }")
    (tmp_path / "Words.java").write_text(f"package shop; {imported} class Words {{ Object f() {{ return {made}; }} }}")
    sentences, words = translate_files([tmp_path / "Sentences.java", tmp_path / "Words.java"])
    assert sentences.report.findings == words.report.findings == []
    assert f"\nfrom {module_name} import " in words.text


def test_a_given_class_is_not_taken_for_one_of_the_same_name_of_storm(tmp_path: Path) -> None:
    spout = "import org.apache.storm.trident.testing.FixedBatchSpout; class Spouts extends FixedBatchSpout { }"
    (tmp_path / "Spouts.java").write_text(f"package shop; {spout}")
    (tmp_path / "FixedBatchSpout.java").write_text("package other; public class FixedBatchSpout { int f; }")
    [_, spouts] = translate_files([tmp_path / "FixedBatchSpout.java", tmp_path / "Spouts.java"])
    assert "from trident_py.testing import FixedBatchSpout" in spouts.text


def test_a_local_does_not_hide_the_module_of_another_file(tmp_path: Path) -> None:
    rates, shop = tmp_path / "Rates.java", tmp_path / "Shop.java"
    rates.write_text("class Rates { static int read() { return 4; } }")
    shop.write_text("class Shop { static int f() { int rates = Rates.read(); return rates + Rates.read(); } }")
    for module in translate_files([rates, shop]):
        (tmp_path / f"{module.source.module}.py").write_text(module.text)
    command = [sys.executable, "-c", "import shop; print(shop.f())"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout == "8\n", done.stderr


def test_an_answer_of_drpc_is_the_text_that_storm_returns(tmp_path: Path) -> None:
    body = 'static String f(LocalDRPC drpc) { return "answer: " + drpc.execute("words", "cat"); }'
    (tmp_path / "Asked.java").write_text(f"import org.apache.storm.LocalDRPC; class Asked {{ {body} }}")
    [module] = translate_files([tmp_path / "Asked.java"])
    assert 'drpc.text("words", "cat")' in module.text


def test_a_pattern_of_topics_becomes_the_text_that_the_spout_takes(tmp_path: Path) -> None:
    body = """
    static final Pattern TOPICS = Pattern.compile("clicks(-1)?");
    static Object f(String brokers) {
        return new KafkaTridentSpoutOpaque<>(KafkaTridentSpoutConfig.builder(brokers, TOPICS).build());
    }"""
    imports = "import java.util.regex.Pattern; import org.apache.storm.kafka.spout.trident.*;"
    (tmp_path / "Clicks.java").write_text(f"{imports} class Clicks {{ {body} }}")
    [module] = translate_files([tmp_path / "Clicks.java"])
    assert module.report.findings == []
    names: dict[str, Any] = {"__name__": "clicks"}
    exec(compile(module.text, "clicks", "exec", dont_inherit=True), names)
    assert names["f"]("localhost:9092").pattern == "clicks(-1)?"


@pytest.mark.parametrize(
    ("described", "made"),
    [
        (['HASH, "counts"'], 'RedisState.Factory(redis_url(), "counts")'),
        (["STRING"], "RedisState.Factory(redis_url())"),
        (['HASH, "counts"', 'HASH, "sums"'], None),
    ],
)
def test_a_redis_state_has_the_hash_of_its_mappers(described: list[str], made: str | None, tmp_path: Path) -> None:
    type_name = "new RedisDataTypeDescription(RedisDataTypeDescription.RedisDataType"
    methods = "".join(f"Object m{index}() {{ return {type_name}.{one}); }} " for index, one in enumerate(described))
    state = "Object f() { return new RedisState.Factory(new JedisPoolConfig.Builder().build()); }"
    imports = "import org.apache.storm.redis.common.config.*; import org.apache.storm.redis.trident.state.*;"
    (tmp_path / "Counts.java").write_text(f"{imports} class Counts {{ {methods} {state} }}")
    [module] = translate_files([tmp_path / "Counts.java"])
    if made is None:
        assert "a state is one" in module.report.findings[0].reason
    else:
        assert module.report.findings == [] and made in module.text


def test_the_translation_is_clean(tmp_path: Path) -> None:
    for name, (body, _, _) in PIECES.items():
        module = translated(tmp_path, body, f"Piece{abs(hash(name))}")
        (tmp_path / f"clean_{abs(hash(name))}.py").write_text(module.text)
    command = [sys.executable, "-m", "ruff", "check", "--isolated", "--select", "F,E9", str(tmp_path)]
    checked = subprocess.run(command, capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout


def test_a_nan_is_no_number_in_a_set() -> None:
    assert java.compare_doubles(math.nan, math.inf) == 1 and java.equals(1, 1.0) is False


@pytest.mark.parametrize(
    ("value", "simple", "org", "jackson"),
    [
        ("20 €, </a>", r'"20 \u20AC, <\/a>"', r'"20 \u20ac, <\/a>"', '"20 €, </a>"'),
        ("a/b\v\x7f\x9f", r'"a\/b\u000B\u007F\u009F"', '"a/b\\u000b\x7f\\u009f"', '"a/b\\u000B\x7f\x9f"'),
        (100.0, "100.0", "100", "100.0"),
        (1e10, "1.0E10", "1.0E10", "1.0E10"),
        (Decimal("2.50"), "2.50", "2.5", "2.50"),
    ],
)
def test_json_is_written_as_by_json_simple_org_json_and_jackson(
    value: Any, simple: str, org: str, jackson: str
) -> None:
    """What json-simple 1.1.1, org.json 20250517 and Jackson 2.21 have written."""
    assert java.to_json([value]) == f"[{simple}]"
    assert str(java.OrgJSONArray([value])) == f"[{org}]"
    assert java.ObjectMapper().writeValueAsString([value]) == f"[{jackson}]"


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, [1.0, math.nan], {"a": math.nan}], ids=str)
def test_org_json_takes_only_finite_numbers(value: Any) -> None:
    for put in (lambda: java.OrgJSONObject().put("a", value), lambda: java.OrgJSONArray().put(value)):
        with pytest.raises(java.JSONError, match=r"^JSON does not allow non-finite numbers\.$"):
            put()


def test_org_json_reads_what_java_reads_of_numbers_that_are_none() -> None:
    found = java.OrgJSONObject.parse('{"a": NaN, "b": Infinity, "c": -Infinity}')
    assert str(found) == '{"a":"NaN","b":"Infinity","c":"-Infinity"}'
    assert str(java.OrgJSONArray.parse("[NaN, -Infinity, 1e999]")) == '["NaN","-Infinity",1E+999]'
    assert math.isnan(found.getDouble("a")) and found.optDouble("c", 1.0) == 1.0


def test_org_json_takes_no_null_as_key() -> None:
    with pytest.raises(TypeError, match="Null key"):
        java.OrgJSONObject().put(None, 1)  # type: ignore[arg-type]
