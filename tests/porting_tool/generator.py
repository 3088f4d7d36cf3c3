"""Java programs of a seed: arithmetic with casts, loops whose bound changes, and compound assignments.

Numbers are small enough that only products, shifts and casts leave the range of their type.
"""

from __future__ import annotations

import re
from random import Random

LOCALS = {"int": ["i", "k"], "long": ["m"], "double": ["d", "e"], "char": ["c"]}
HEAD = """import java.util.*;

public class {name} {{
    static int at = 0, limit = 0;
    static int[] numbers = {{3, 14, 15, 92, 65}};
    static int next() {{ at = (at + 1) % 5; return at; }}
    static int shrink() {{ limit--; return limit; }}
    static void grow(List<Integer> q, int n) {{ if (q.size() < n) {{ q.add(n - q.size()); }} }}

    public static void main(String[] args) {{
"""


def program(name: str, seed: int, pieces: int = 40) -> str:
    """Return the source of a class that prints a line for each piece."""
    random = Random(seed)
    made = [random.choice((_values, _values, _compounds, _loop, _copy, _builder))(random) for _ in range(pieces)]
    calls = "".join(f"        piece{number}();\n" for number in range(pieces))
    methods = "".join(f"    static void piece{number}() {{\n{body}    }}\n" for number, body in enumerate(made))
    return f"{HEAD.format(name=name)}{calls}    }}\n{methods}}}\n"


def _declare(random: Random) -> str:
    whole = [random.randint(-999, 999) for _ in range(3)]
    floats = [round(random.uniform(-99, 99), random.choice((1, 2, 5))) for _ in range(2)]
    return (
        f"        int i = {whole[0]}, k = {whole[1]}; long m = {whole[2]}L; "
        f"double d = {floats[0]}, e = {floats[1]}; char c = '{random.choice('azAZ07')}';\n"
    )


def expression(random: Random, kind: str, depth: int) -> str:
    """Return an expression of a type."""
    if depth == 0 or random.random() < 0.15:
        return random.choice([*LOCALS[kind], _literal(random, kind)])
    if kind == "char":
        return f"(char) ('a' + ({expression(random, 'int', depth - 1)} & 7))"
    choices = [_binary, _binary, _cast, _cast, _negated, _chosen]
    return random.choice(choices)(random, kind, depth - 1)


def _literal(random: Random, kind: str) -> str:
    number = random.randint(0, 99)
    return {"int": f"{number}", "long": f"{number}L", "double": f"{number}.25", "char": "'q'"}[kind]


def _binary(random: Random, kind: str, depth: int) -> str:
    operator = random.choice("+-*+-*/" if kind == "double" else "+-*+-*/%&|^<>")
    narrow = {"int": ["int", "int", "char"], "long": ["long", "int"], "double": ["double", "int", "long"]}[kind]
    sides = [expression(random, kind, depth), expression(random, random.choice(narrow), depth)]
    random.shuffle(sides)
    left, right = map(_operand, sides)
    if operator in "<>":
        return f"{left} {operator * 2} 3"
    if operator in "/%" and kind != "double":
        right = f"({right} | 1)"
    return f"{left} {operator} {right}"


def _operand(written: str) -> str:
    """A cast or a name stands without parentheses."""
    cast = re.fullmatch(r"\((int|long|double)\) \([^()]*\)", written)
    return written if cast or written.isalnum() else f"({written})"


def _cast(random: Random, kind: str, depth: int) -> str:
    source = random.choice(["double", "double", "long", "int", "char"])
    return f"({kind}) ({expression(random, source, depth)})"


def _negated(random: Random, kind: str, depth: int) -> str:
    return f"-({expression(random, kind, depth)})"


def _chosen(random: Random, kind: str, depth: int) -> str:
    one, other = (expression(random, random.choice(["int", "double", "long"]), depth) for _ in range(2))
    return f"(({one}) < ({other}) ? {expression(random, kind, depth)} : {expression(random, kind, depth)})"


def _show(random: Random, kind: str) -> str:
    value = expression(random, kind, 4)
    return f'((long) (({value}) * 1000) + "")' if kind == "double" else f'(({value}) + "")'


def _values(random: Random) -> str:
    shown = [_show(random, random.choice(("int", "long", "double"))) for _ in range(3)]
    joined = ' + " " + '.join(shown)
    return f"{_declare(random)}        System.out.println({joined});\n"


def _compounds(random: Random) -> str:
    lines = []
    for _ in range(4):
        target = random.choice(["i", "m", "d", "c", "numbers[next()]", "numbers[(next() + i & 3)]"])
        operators = {"d": "+-*/", "c": "+-"}.get(target, "+-*%|^")
        operator, kind = random.choice(operators), random.choice(("int", "int", "long", "double"))
        kind = "int" if operator in "|^" or target == "c" else kind
        value = expression(random, kind, 2)
        value = f"(({value}) | 1)" if operator in "/%" and kind != "double" else f"({value})"
        lines.append(f"        {target} {operator}= {value};\n")
        lines.append("        for (int j = 0; j < numbers.length; j++) { numbers[j] %= 1000; }\n")
    shown = 'i + " " + m + " " + (long) (d * 1000) + " " + (int) c + " " + Arrays.toString(numbers) + at'
    return _declare(random) + "".join(lines) + f"        System.out.println({shown});\n"


def _loop(random: Random) -> str:
    bodies = [
        "grow(q, 6);", "if (q.get(j) % 3 == 0) { q.remove(j); q.add(j % 3, 7); }",
        "if (q.size() < 7) { same.add(q.get(j) + 1); }", "seen.append(q.get(j)).append(' ');",
        "counts.merge(q.get(j) % 3, 1, Integer::sum);", "shrink();", "if (j > 1) { same.remove(0); j--; }",
    ]  # fmt: skip
    body = " ".join(random.sample(bodies, 3))
    bound = random.choice(["q.size()", "q.size()", "Math.min(q.size(), 5)", "limit", "q.size() - 1"])
    guard = "if (j >= q.size() || rounds > 30) { break; } rounds++;"
    values = ", ".join(str(random.randint(0, 30)) for _ in range(4))
    return (
        f"        List<Integer> q = new ArrayList<>(Arrays.asList({values})); List<Integer> same = q; int rounds = 0;\n"
        "        StringBuilder seen = new StringBuilder(); Map<Integer, Integer> counts = new TreeMap<>(); limit = 6;\n"
        f"        for (int j = 0; j < {bound}; j++) {{ {guard} {body} }}\n"
        '        System.out.println(q + " " + rounds + " " + seen + counts + limit);\n'
    )


def _copy(random: Random) -> str:
    values = ", ".join(str(random.randint(0, 30)) for _ in range(6))
    what = random.choice(["q.remove(x);", "q.add(0, x + 1);", "q.removeIf(y -> y > x);"])
    test = random.choice(["x % 2 == 0", "x > 10", "q.contains(x + 1)"])
    return (
        f"        List<Integer> q = new ArrayList<>(Arrays.asList({values}));\n"
        f"        for (Integer x : new ArrayList<>(q)) {{ if ({test}) {{ {what} }} }}\n"
        "        System.out.println(q);\n"
    )


def _builder(random: Random) -> str:
    what = random.choice(["sb.insert(j, '-');", "sb.deleteCharAt(j);", "sb.append(sb.charAt(j));", "dq.pollFirst();"])
    bound = "dq.size()" if what.startswith("dq") else "sb.length()"
    return (
        '        StringBuilder sb = new StringBuilder("abcdef"); '
        "Deque<Integer> dq = new ArrayDeque<>(Arrays.asList(1, 2, 3, 4, 5));\n"
        f"        for (int j = {random.randint(0, 2)}; j < {bound}; j += {random.randint(1, 2)}) "
        f"{{ {what} if (sb.length() > 20) {{ break; }} }}\n"
        '        System.out.println(sb + " " + dq);\n'
    )
