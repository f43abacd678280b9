"""Nothing in src/ makes objects out of bytes of a file: no pickle, no code, no unsafe YAML.

The exceptions are named here, each with its reason; a new one, or one that is no more, fails.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SRC = Path(__file__).parents[1] / "src" / "rlproof"
_MODULES = {"pickle", "_pickle", "cPickle", "marshal", "shelve", "dill", "cloudpickle", "joblib"}
_CALLS = {"eval", "exec"}
_METHODS = {"read_pickle", "unsafe_load", "full_load", "unsafe_load_all", "run_path", "run_module"}

ALLOWED = {
    ("bind/child/load.py", "exec"): "the sandboxed child makes the script's definitions",
    ("bind/child/outlined.py", "exec"): "the sandboxed child makes functions of its statements",
    ("bind/child/outlined.py", "pickle"): "a syntax tree, from the parent over a private pipe",
    ("bind/outlined.py", "pickle"): "writes that tree; nothing is loaded",
    ("defence/worker.py", "pickle"): "numbers of claims, from a process started here for them",
    ("integrations/partitions.py", "pickle"): "partial sums, from workers of the caller's own job",
    ("integrations/openrlhf/__main__.py", "run_module"): "starts the user's trainer, when asked to",
}


def uses(tree: ast.AST) -> Iterator[str]:
    """What in a file could run code that stands in data."""
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                yield from (a.name.split(".")[0] for a in names if a.name.split(".")[0] in _MODULES)
            case ast.ImportFrom(module=str(module)) if module.split(".")[0] in _MODULES:
                yield module.split(".")[0]
            case ast.Call(func=ast.Name(id=name)) if name in _CALLS:
                yield name
            case ast.Call(func=ast.Name(id="import_module" | "__import__"), args=[first, *_]):
                if isinstance(first, ast.Constant) and first.value in _MODULES:
                    yield str(first.value)
            case ast.Call(func=ast.Attribute(attr=attr)) if attr in _METHODS:
                yield attr
            case ast.Call(func=ast.Attribute(value=ast.Name(id=owner), attr="load")):
                yield from _load(owner, node)


def _load(owner: str, call: ast.Call) -> Iterator[str]:
    given = {k.arg: k.value for k in call.keywords}
    if owner == "torch" and not _is(given.get("weights_only"), True):
        yield "torch.load"
    if owner in ("np", "numpy") and not _is(given.get("allow_pickle", ast.Constant(False)), False):
        yield "numpy.load"
    if owner == "yaml" and "Safe" not in ast.unparse(call):
        yield "yaml.load"


def _is(node: ast.expr | None, value: bool) -> bool:
    return isinstance(node, ast.Constant) and node.value is value


def test_only_the_places_that_are_named_load_code_or_objects() -> None:
    found = {
        (path.relative_to(SRC).as_posix(), use)
        for path in SRC.rglob("*.py")
        for text in [path.read_text("utf-8")]
        if any(word in text for word in (*_MODULES, *_CALLS, *_METHODS, "load("))  # it is faster
        for use in uses(ast.parse(text))
    }
    assert found == set(ALLOWED)


@pytest.mark.parametrize(
    ("text", "use"),
    [
        ("import pickle", "pickle"),
        ("import os, marshal as m", "marshal"),
        ("from shelve import open", "shelve"),
        ("def f():\n    from cloudpickle.compat import pickle", "cloudpickle"),
        ("import_module('dill')", "dill"),
        ("torch.load(path)", "torch.load"),
        ("torch.load(path, weights_only=False)", "torch.load"),
        ("torch.load(path, weights_only=flag)", "torch.load"),
        ("np.load(path, allow_pickle=True)", "numpy.load"),
        ("yaml.load(text)", "yaml.load"),
        ("yaml.load(text, Loader=yaml.Loader)", "yaml.load"),
        ("yaml.unsafe_load(text)", "unsafe_load"),
        ("pandas.read_pickle(path)", "read_pickle"),
        ("x = eval(text)", "eval"),
        ("exec(compile(text, '', 'exec'))", "exec"),
        ("runpy.run_path(path)", "run_path"),
    ],
)
def test_each_would_be_seen(text: str, use: str) -> None:
    assert list(uses(ast.parse(text))) == [use]


@pytest.mark.parametrize(
    "text",
    [
        "torch.load(path, weights_only=True)",
        "np.load(path)",
        "np.load(path, allow_pickle=False)",
        "yaml.load(text, Loader=yaml.SafeLoader)",
        "json.load(file)",
        "model.eval()",
        "re.compile(text)",
        "ast.literal_eval(text)",
    ],
)
def test_what_is_safe_is_not(text: str) -> None:
    assert list(uses(ast.parse(text))) == []
