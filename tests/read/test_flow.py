"""Taints: which parameters reach an expression. Every expected set is read off the code shown."""

import ast
import textwrap

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlproof.read.flow import Flow


def flow(body, parameters="a b c"):
    names = parameters.split()
    text = f"def f({', '.join(names)}):\n" + textwrap.indent(textwrap.dedent(body), "    ")
    function = ast.parse(text).body[0]
    return function, Flow(function, {name: name for name in names})


def taint(body):
    """The taint of what the last statement, a return, gives back."""
    function, found = flow(body)
    return "".join(sorted(found.taints[function.body[-1].value]))


STRAIGHT = {
    "return a - b": "ab",
    "return g(a, k=b)": "ab",
    "return a.mean()": "a",
    "return (a - b).clamp(0, 1)": "ab",
    "return -a[b]": "a",  # an index picks; it is no part of the value
    "return a if c else b": "ab",
    "return a < b": "ab",
    "return 1.0": "",
    "return unknown": "",
    "return [a, (b, 1)]": "ab",
    "return f'{a}'": "a",
    "x, y = a, b\nreturn y": "b",
    "a, b = 1, a\nreturn a": "",
    "(x, y), z = (a, b), 0\nreturn z": "",
    "x, *y = a\nreturn y": "a",
    "x, y = g(a)\nreturn x": "a",
    "x: int = a\nreturn x": "a",
    "x = y = a\nreturn y": "a",
    "x = a\nx = b\nreturn x": "b",
    "x = a\nx += b\nreturn x": "ab",
    "x = a\nx *= 2\nreturn x": "a",
    "x = {}\nx['k'] = a\nreturn x": "a",
    "x = g()\nx.field = a\nreturn x": "a",
}
UNPACKED = {
    "x, y = map(g, (a, b))\nreturn x": "a",
    "x, y = (g(q) for q in (a, b))\nreturn y": "b",
    "x, y = [q[0] for q in [a, b]]\nreturn x": "a",
    "x, y = (g(q, c) for q in (a, b))\nreturn x": "ac",
}
LOOPS = {
    "for x in a:\n    y = x\nreturn y": "a",
    "for x, y in zip(a, b):\n    z = y\nreturn z": "b",
    "for x, y in zip(a, b, strict=True):\n    z = x\nreturn z": "a",
    "for i, x in enumerate(a):\n    z = x\nreturn z": "a",
    "for i, x in enumerate(a):\n    z = i\nreturn z": "",
    "x = a\nfor x, y in enumerate(b):\n    z = x\nreturn z": "",
    "for i, (x, y) in enumerate(zip(a, b)):\n    z = x\nreturn z": "a",
    "for x, (y, z) in zip(a, zip(b, c)):\n    w = z\nreturn w": "c",
    "for x in reversed(list(a)):\n    y = x\nreturn y": "a",
    "for i in range(len(a)):\n    x = i\nreturn x": "",
    "for i in range(3):\n    x = a[i]\nreturn x": "a",
    "x = 0\nfor r in a:\n    for v in r:\n        x += v\nreturn x": "a",
    "x = 0\nwhile c:\n    x += a\nreturn x": "a",
    "return [x for x, y in zip(a, b)]": "a",
    "return sum(x * y for x, y in zip(a, b))": "ab",
    "return [v for row in a for v in row]": "a",
    "return {k: v for k, v in zip(a, b)}": "ab",
    "return {x for x in a if x in b}": "a",  # a condition picks
}
LAYOUT = {
    f"return {expression}": ""
    for expression in (
        "len(a)",
        "range(len(a))",
        "a.shape",
        "a.shape[0]",
        "a.size(1)",
        "a.numel()",
        "a.dim()",
        "a.dtype",
        "torch.zeros_like(a)",
        "np.ones_like(a)",
        "isinstance(a, list)",
    )
}
NESTED = {
    "def g(x):\n    return x\nreturn g(a)": "a",
    "def g(x):\n    return x + b\nreturn g(a) * b": "ab",
    "with g():\n    x = a\nreturn x": "a",
    "try:\n    x = a\nfinally:\n    y = b\nreturn x": "a",
    "return list(map(lambda x: x + b, a))": "ab",
    "if c:\n    x = a\nelse:\n    x = a + b\nreturn x": "ab",
    "x = a\nif c:\n    x = x * b\nreturn x": "ab",
}


@pytest.mark.parametrize(
    ("body", "expected"), list((STRAIGHT | UNPACKED | LOOPS | LAYOUT | NESTED).items())
)
def test_taint_of_the_result(body, expected):
    assert taint(body) == expected


HIDDEN_PATHS = {
    "if c:\n    x = a\nelse:\n    x = 0.0\nreturn x": "a",
    "if c:\n    x = a\nelse:\n    x = b\nreturn x": "ab",
    "x = []\nfor v in a:\n    x.append(v)\nreturn sum(x)": "a",
    "x = []\nx.extend(a)\nreturn x": "a",
    "x = y = 0\nfor v in a:\n    x = y\n    y = v\nreturn x": "a",
    "if (x := a):\n    pass\nreturn x": "a",
    "with g(a) as x:\n    y = x\nreturn y": "a",
    "def g():\n    return a\nreturn g()": "a",
    "g = lambda: a\nreturn g()": "a",
    "x = 0\nmatch c:\n    case 1:\n        x = a\nreturn x": "a",
    "x = a\ny = [x for x in b]\nreturn x": "a",
    "try:\n    x = a\nexcept E:\n    x = b\nreturn x": "ab",
}


@pytest.mark.parametrize(("body", "expected"), list(HIDDEN_PATHS.items()))
def test_taint_along_less_obvious_paths(body, expected):
    assert set(expected) <= set(taint(body))


def test_statement_and_loops_of_an_expression():
    function, found = flow("for i in a:\n    while c:\n        x = b\nreturn 0\n")
    outer, inner = function.body[0], function.body[0].body[0]
    assignment = inner.body[0]
    assert found.statement[assignment.value] is assignment
    assert found.loops[assignment.value] == (outer, inner)
    assert found.loops[function.body[-1].value] == ()


def test_mark_travels_with_the_value():
    function, _ = flow("x = a * b\ny = x + 1\nreturn y")
    product = function.body[0].value
    found = Flow(function, {"a": "a", "b": "b"}, {product: "marked"})
    assert "marked" in found.taints[function.body[-1].value]
    assert "marked" not in found.taints[product.left]


def test_order_is_that_of_evaluation_once():
    _, found = flow("x = a\nfor i in b:\n    x = x + i\nreturn x")
    lines = [node.lineno for node in found.order]
    assert lines == sorted(lines)
    assert len(set(map(id, found.order))) == len(found.order)


NAMES = st.sampled_from(["a", "b", "c", "x", "y", "z"])
ATOMS = NAMES | st.just("1.0") | NAMES.map(lambda n: f"len({n})")
EXPRESSIONS = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from("+-*/"), inner).map(lambda t: f"({t[0]} {t[1]} {t[2]})"),
        inner.map(lambda e: f"g({e})"),
        st.tuples(inner, inner).map(lambda t: f"[x for x, y in zip([{t[0]}], [{t[1]}])]"),
        st.tuples(inner, inner, inner).map(lambda t: f"({t[0]} if {t[1]} else {t[2]})"),
        st.tuples(inner, inner).map(lambda t: f"({t[0]}, {t[1]})"),
    ),
    max_leaves=5,
)
SIMPLE = st.one_of(
    st.tuples(NAMES, EXPRESSIONS).map(lambda t: f"{t[0]} = {t[1]}"),
    st.tuples(NAMES, EXPRESSIONS).map(lambda t: f"{t[0]} += {t[1]}"),
    st.tuples(NAMES, NAMES, EXPRESSIONS, EXPRESSIONS).map(
        lambda t: f"{t[0]}, {t[1]} = {t[2]}, {t[3]}"
    ),
    st.tuples(NAMES, NAMES, EXPRESSIONS).map(lambda t: f"{t[0]}, {t[1]} = {t[2]}"),
)
BLOCKS = st.lists(
    SIMPLE
    | st.tuples(NAMES, EXPRESSIONS, SIMPLE).map(lambda t: f"for {t[0]} in {t[1]}:\n    {t[2]}")
    | st.tuples(EXPRESSIONS, SIMPLE, SIMPLE).map(
        lambda t: f"if {t[0]}:\n    {t[1]}\nelse:\n    {t[2]}"
    ),
    max_size=6,
)
SAME = settings(derandomize=True, deadline=None, max_examples=200)


@given(BLOCKS, EXPRESSIONS)
@SAME
def test_no_taint_of_a_parameter_that_does_not_occur(block, result):
    function, found = flow("\n".join([*block, f"return {result}"]))
    inside = (node for statement in function.body for node in ast.walk(statement))
    occurs = {node.id for node in inside if isinstance(node, ast.Name)}
    for node, labels in found.taints.items():
        assert labels <= occurs & set("abc"), ast.unparse(node)


ASSIGNMENTS = st.lists(st.tuples(NAMES, st.lists(NAMES, max_size=3)), max_size=6)


@given(ASSIGNMENTS, NAMES)
@SAME
def test_straight_code(assignments, result):
    """Sums of names, assigned one after the other: the taint is a plain substitution.

    It is exact where every name is assigned before it is read and no parameter is overwritten;
    elsewhere the second pass may only add labels.
    """
    lines = [f"{name} = {' + '.join(['1.0', *parts])}" for name, parts in assignments]
    meaning, plain = {name: {name} for name in "abc"}, True
    for name, parts in assignments:
        plain = plain and name not in "abc" and all(part in meaning for part in parts)
        meaning[name] = set().union(*(meaning.get(part, set()) for part in parts))
    found, expected = (
        set(taint("\n".join([*lines, f"return {result}"]))),
        meaning.get(result, set()),
    )
    assert found == expected if plain and result in meaning else found >= expected


@given(BLOCKS, EXPRESSIONS)
@SAME
def test_every_expression_has_a_taint_a_statement_and_loops(block, result):
    function, found = flow("\n".join([*block, f"return {result}"]))
    for node in found.order:
        assert node in found.taints
        assert node in found.statement
        assert node in found.loops
    assert function.body[-1].value in found.taints


def test_the_else_of_a_loop_may_not_run():
    found = taint("while b:\n    x = a\n    break\nelse:\n    x = b\nreturn x")
    assert set("ab") <= set(found)


def test_parameters_of_a_function_inside_are_what_it_is_given():
    """Also where one of them has the name of something else outside."""
    function, found = flow("def g(b, k):\n    x = b - k\n    return x\nreturn g(a, k=c)")
    difference = function.body[0].body[0].value
    assert "a" in found.taints[difference.left]
    assert found.taints[difference.right] == {"c"}


def test_functions_inside_that_call_each_other_end():
    body = "def g(x):\n    return h(x)\ndef h(x):\n    return g(x)\nreturn g(a)"
    assert "a" in taint(body)
