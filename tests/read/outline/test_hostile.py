"""Whatever the source is, outlining ends without an exception and soon."""

import ast
import time
import warnings

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from rlproof.read.outline import outline
from rlproof.read.roles import recognise

NAMES = st.sampled_from([
    "logp", "old_logp", "advantages", "rewards", "mask", "self", "batch", "model", "loss", "x",
    "beta", "clip_eps", "args", "cfg",
])  # fmt: skip


def _attribute(inner):
    return st.builds("{}.{}".format, inner, NAMES)


def _compound(inner):
    return st.one_of(
        _attribute(inner),
        st.builds('{}["{}"]'.format, inner, NAMES),
        st.builds("{}[{}:, None]".format, inner, st.integers(0, 2)),
        st.builds("({} {} {})".format, inner, st.sampled_from("+-*/@<"), inner),
        st.builds("({} if {} else {})".format, inner, inner, inner),
        st.builds("{}({}, k={})".format, inner, inner, inner),
        st.builds("[{} for {} in {}]".format, inner, NAMES, inner),
        st.builds("(lambda {}: {})".format, NAMES, inner),
        st.builds("({} := {})".format, st.just("w"), inner),
        st.builds('({} == "grpo" and not {})'.format, inner, inner),
        st.builds("({} is None or {} in {})".format, inner, inner, inner),
        st.builds('{}.get("{}", {})'.format, inner, NAMES, inner),
        st.builds("getattr({}, '{}')".format, inner, NAMES),
    )


EXPRESSIONS = st.recursive(
    st.one_of(NAMES, st.sampled_from(["1", "0.5", "None", "True", '"grpo"', "()", "{}", "[]"])),
    _compound,
    max_leaves=12,
)


def _indented(lines):
    return "\n".join("    " + line for text in lines for line in text.split("\n")) or "    pass"


SIMPLE = st.one_of(
    st.builds("{} = {}".format, NAMES, EXPRESSIONS),
    st.builds("{}, {} = {}".format, NAMES, NAMES, EXPRESSIONS),
    st.builds("{}, {} = {}, {}".format, NAMES, NAMES, EXPRESSIONS, EXPRESSIONS),
    st.builds("{}.{} = {}".format, NAMES, NAMES, EXPRESSIONS),
    st.builds('{}["{}"] = {}'.format, NAMES, NAMES, EXPRESSIONS),
    st.builds("{} += {}".format, NAMES, EXPRESSIONS),
    st.builds("{}.append({})".format, NAMES, EXPRESSIONS),
    st.builds("loss = -({} * advantages).mean()".format, EXPRESSIONS),
    st.just("loss.backward()"),
    st.builds("return {}".format, EXPRESSIONS),
    st.sampled_from(["break", "continue", "raise ValueError", "del x", "global x", "import torch"]),
)


def _blocks(inner):
    body = st.lists(inner, min_size=1, max_size=4).map(_indented)
    return st.one_of(
        st.builds("if {}:\n{}".format, EXPRESSIONS, body),
        st.builds("if {}:\n{}\nelse:\n{}".format, EXPRESSIONS, body, body),
        st.builds("for {} in {}:\n{}".format, NAMES, EXPRESSIONS, body),
        st.builds("while {}:\n{}".format, EXPRESSIONS, body),
        st.builds("with {} as {}:\n{}".format, EXPRESSIONS, NAMES, body),
        st.builds("try:\n{}\nexcept Exception as e:\n{}".format, body, body),
        st.builds("def {}({}=1, *a, **k):\n{}".format, NAMES, NAMES, body),
        st.builds("class {}:\n{}".format, NAMES, body),
        st.builds(
            "match {}:\n    case 'a' | 'b':\n{}".format,
            EXPRESSIONS,
            body.map(lambda text: "\n".join("    " + line for line in text.split("\n"))),
        ),
    )


STATEMENTS = st.recursive(SIMPLE, _blocks, max_leaves=10)
SCRIPTS = st.lists(STATEMENTS, min_size=1, max_size=6)


def _parsed(text):
    """The tree of a script that Python could run, if it is one."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
            compile(tree, "script", "exec")
    except (SyntaxError, ValueError):
        return None
    return tree


def _compiles(node):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        compile(ast.fix_missing_locations(ast.Module([node], [])), "script", "exec")


@pytest.mark.slow
@settings(
    max_examples=150, deadline=None, phases=[Phase.explicit, Phase.reuse, Phase.generate]
)  # shrinking scripts takes minutes and tells little
@given(SCRIPTS, SCRIPTS)
def test_generated_scripts_are_outlined_or_doubted(body, init):
    head = "class T(Base):\n    def __init__(self, args, beta=0.1):\n"
    text = head + _indented([_indented(init)]) + "\n    def loss(self, logp, batch, cfg=None):\n"
    tree = _parsed(text + _indented([_indented(body)]) + "\n") or _parsed("\n".join(body))
    if tree is None:
        return
    before = ast.dump(tree, include_attributes=True)
    targets, doubts = outline(tree, recognise(tree))
    assert ast.dump(tree, include_attributes=True) == before  # the file's own tree is left alone
    for target in targets:
        _compiles(target.node)
    assert all(doubt.reason for doubt in doubts)


@pytest.mark.parametrize(
    "text",
    [
        "def loss(self, logp, old_logp, adv, cfg):\n    x = " + "-" * 900 + "logp\n    return x",
        "def f(batch, adv, logp):\n" + "".join(
            f"{'    ' * i}if batch.x{i}:\n" for i in range(1, 40)
        ) + "    " * 40 + "loss = logp * adv\n    loss.backward()",
        "def f(batch, adv, logp):\n    x = logp" + " + logp" * 900 + "\n    (x * adv).backward()",
        "def f(s, adv, logp):\n    if s.k == '0':\n        y = 0\n" + "".join(
            f"    elif s.k == '{i}':\n        y = logp * {i}\n" for i in range(1, 120)
        ) + "    (y * adv).backward()",
    ],
)  # fmt: skip
def test_deep_and_wide_code_ends_soon(text):
    tree = ast.parse(text)
    start = time.process_time()
    outline(tree, recognise(tree))
    assert time.process_time() - start < 5
