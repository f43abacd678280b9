"""Top-level statements of a script, and of the modules beside it, are never run."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.bind.hostile import ask, script, snapshot, written

from rlproof.bind.child.keep import Scope, is_constant
from rlproof.bind.sandbox import Sandbox

pytestmark = pytest.mark.usefixtures("cold_children")

WRITE = "open('ran', 'w').close()"
_DEFINITIONS = f"def effect(*a, **k):\n {WRITE}\n return a[0] if a else 1\n"

STATEMENTS = {
    "call": "effect()",
    "assignment": "x = effect()",
    "annotated": "x: int = effect()",
    "annotation": "x: effect() = 1",
    "augmented": "x = 1\nx += effect()",
    "walrus": "(x := effect())",
    "if": "if effect(): pass",
    "main": "if __name__ in ('__main__', '__rlproof_script__'):\n effect()",
    "else": "if False: pass\nelse: effect()",
    "while": "while effect(): break",
    "for": "for x in [effect()]: pass",
    "for_body": "for x in [1]: effect()",
    "with": "with open('ran', 'w') as file: pass",
    "try": "try: effect()\nexcept Exception: pass",
    "except": "try: import no_such_package\nexcept ImportError: effect()",
    "except_type": "try: import no_such_package\nexcept (effect(), ImportError)[1]: pass",
    "finally": "try: import math\nfinally: effect()",
    "match": "match effect():\n case _: pass",
    "assert": "assert effect()",
    "delete": "d = {1: 2}\ndel d[effect()]",
    "raise": "try: raise ValueError(effect())\nexcept ValueError: pass",
    "comprehension": "x = [effect() for _ in [1]]",
    "generator": "x = list(effect() for _ in [1])",
    "lambda": "x = (lambda: effect())()",
    "conditional": "x = effect() if True else 0",
    "f_string": "x = f'{effect()}'",
    "starred": "x = [*[effect()]]",
    "subscript": "x = [1][effect() - 1]",
    "default": "def g(x=effect()): pass",
    "open_default": "def g(x=open('ran', 'w')): pass",
    "keyword_default": "def g(*, x=effect()): pass",
    "lambda_default": "g = lambda x=effect(): x",
    "class_body": "class C:\n effect()",
    "class_attribute": "class C:\n x = effect()",
    "class_base": "class C(effect(object)): pass",
    "class_keyword": "class C(metaclass=effect(type)): pass",
    "nested_class": "class C:\n class D:\n  effect()",
    "method_default": "class C:\n def g(self, x=effect()): pass",
    "shadowed_builtin": "sum = effect\nx = sum(1)",
    "redefined_builtin": f"def sum(x):\n {WRITE}\n return x\ny = sum(1)",
    "setitem": "d = {}\nd['x'] = effect()",
    "attribute": "effect.x = effect()",
    "unpacking": "a, b = effect(), 1",
    "decorator": "@effect\ndef g(): pass",
    "decorator_call": "@(lambda f: effect() and f)\ndef g(): pass",
    "class_decorator": "@effect\nclass C: pass",
    "decorator_in_try": "try: import no_such\nexcept ImportError:\n @effect\n def g(): pass",
    "init_subclass": "class B:\n def __init_subclass__(cls): effect()\nclass C(B): pass",
    "descriptor": "class D:\n __set_name__ = effect\nclass C:\n x = D()",
    "import_beside": "import beside",
    "from_beside": "from beside import value",
    "star_beside": "from beside import *",
    "submodule": "from package.inner import value",
    "package": "import package",
    "namespace": "from spaced.inner import value",
    "in_try": "try: import beside\nexcept ImportError: beside = None",
    "circular": "import first",
    "in_class": "class C:\n import beside",
}  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the script is the working folder, as it mostly is."""
    monkeypatch.chdir(tmp_path)
    beside = f"{_DEFINITIONS}value = 1\neffect()\n"
    for name in ("package", "spaced"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "inner.py").write_text(beside)
    (tmp_path / "package" / "__init__.py").write_text(beside)
    (tmp_path / "beside.py").write_text(beside)
    (tmp_path / "first.py").write_text(f"import second\n{beside}")
    (tmp_path / "second.py").write_text(f"import first\n{beside}")
    return tmp_path


def _case(statements: str) -> str:
    return script("pass", f"{_DEFINITIONS}{statements}\n")


@pytest.mark.parametrize("statements", STATEMENTS.values(), ids=STATEMENTS)
def test_nothing_at_the_top_level_runs(statements: str, folder: Path) -> None:
    source = written(folder, _case(statements))
    before = snapshot(folder)
    assert ask(source) == "1.5"  # the function itself is not hindered
    assert snapshot(folder) == before


@pytest.mark.parametrize("statements", STATEMENTS.values(), ids=STATEMENTS)
def test_each_runs_as_a_script(statements: str, folder: Path) -> None:
    """The test above can fail: Python itself runs every one of these."""
    if statements == STATEMENTS["annotation"] and sys.version_info >= (3, 14):
        pytest.skip("Python 3.14 evaluates annotations when they are asked for (PEP 649)")
    source = written(folder, _case(statements))
    run = [sys.executable, "-B", "-W", "ignore", source.path]
    subprocess.run(run, check=False, capture_output=True, timeout=60)
    assert (folder / "ran").exists()


@pytest.mark.parametrize("path", [".", "..", ""])
def test_a_search_path_to_the_script_changes_nothing(
    path: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With PYTHONPATH=. the modules beside look installed; they are still filtered."""
    old = os.environ.get("PYTHONPATH", "")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str((folder / path).resolve()), old]))
    source = written(folder, _case("import beside\nfrom package.inner import value"))
    before = snapshot(folder)
    assert ask(source) == "1.5"
    assert snapshot(folder) == before


def test_a_file_named_like_the_standard_library_is_not_run(folder: Path) -> None:
    """The child starts in the user's folder and must not take its own modules from there."""
    for name in ("json", "random", "traceback", "rlproof", "sitecustomize"):
        (folder / f"{name}.py").write_text(WRITE)
    source = written(folder, _case("import json, random"))
    before = snapshot(folder)
    assert ask(source) == "1.5"
    assert snapshot(folder) == before


@pytest.mark.parametrize(
    ("statements", "name", "reason"),
    [
        ("model = build()", "model", "line 1 defines model by running code"),
        ("import no_such_package", "no_such_package", "needs no_such_package, which is not"),
        ("from no_such_package import x as y", "y", "needs no_such_package, which is not"),
        ("if 1:\n for i in []:\n  x = 1", "x", "line 1 defines x by running code"),
        ("with open('f') as file: pass", "file", "line 1 defines file by running code"),
        ("(n := build())", "n", "line 1 defines n by running code"),
        ("from . import sibling", "sibling", "cannot import name 'sibling'"),
        ("x = {}['y']", "x", "line 1 failed: KeyError: 'y'"),
        ("x = 1 / 0", "x", "line 1 failed: ZeroDivisionError: division by zero"),
        ("import broken", "broken", "line 1 failed: SyntaxError"),
        ("class C(build()): pass", "C", "line 1 defines C by running code"),
    ],
)
def test_names_that_could_not_be_had_say_why(
    statements: str, name: str, reason: str, folder: Path
) -> None:
    (folder / "broken.py").write_text("def (")
    source = written(folder, f"{statements}\ndef f():\n return {name} + 1\n")
    with Sandbox(source) as sandbox:
        assert reason in sandbox.load()[name]
        (answer,) = sandbox.call([{"function": "f", "arguments": {}, "want": "plain"}])
    assert reason in answer["error"]["message"]


@pytest.mark.parametrize(
    ("statements", "value"),
    [
        ("x = 1\nx = 2", 2),  # the last one counts
        ("x = 1\nif build(): x = 2", 1),  # a branch may not be taken
        ("x = build()\nx = 3", 3),  # set again by a constant
        ("def x(): pass\nx = 4", 4),
        ("x = 5\nif __name__ == '__main__': x = parse()", 5),  # an import does not run this
        ("from values import *", 6),
        ("from values import x", 6),
        ("import values\nx = values.x", 6),
        ("from inside.values import x", 6),
        ("x: 'int' = 7", 7),
        ("try: from values import x\nexcept ImportError: x = 0", 6),
        ("try: from no_such_package import x\nexcept ImportError: x = 8", 8),
    ],
)
def test_constants_keep_their_values(statements: str, value: float, folder: Path) -> None:
    (folder / "values.py").write_text("x = 6\n")
    (folder / "inside").mkdir()
    (folder / "inside" / "values.py").write_text("x = 6\n")
    assert ask(written(folder, f"{statements}\ndef f():\n return x\n")) == repr(value)


def test_a_function_that_is_wrapped_later_is_judged_as_written(folder: Path) -> None:
    """`loss = torch.compile(loss)` is common, and changes no mathematics."""
    source = written(folder, "def f():\n return 1.5\nf = compile_it(f)\n")
    with Sandbox(source) as sandbox:
        assert sandbox.load() == {}
    assert ask(source) == "1.5"


@pytest.mark.parametrize("constant", ["9**9**9", "[0] * 10**11", "list(range(10**12))"])
def test_a_constant_without_end_is_no_hang(constant: str, folder: Path) -> None:
    source = written(folder, f"X = {constant}\ndef f():\n return 1.5\n")
    assert ask(source, seconds=0.5) in ("1.5", "did not finish within 0.5 s")


@pytest.mark.parametrize(
    ("definition", "reason"),
    [
        ("async def f(): return 1.5", "coroutine"),
        ("def f(): yield 1.5", "generator"),
        ("class f: pass", "f"),
        ("f = 1", "not callable"),
        ("", "not defined"),
    ],
)
def test_what_is_no_plain_function_is_a_reason(definition: str, reason: str, folder: Path) -> None:
    assert reason in ask(written(folder, f"{definition}\n#\n"))


@pytest.mark.parametrize("decorator", ["@register('x')", "@register", "@registry.add(name='x')"])
def test_a_decorator_that_could_not_be_had_is_left_out(decorator: str, folder: Path) -> None:
    text = "from no_such_package import register, registry\n"
    source = written(folder, f"{text}{decorator}\ndef f(x):\n    return x + 1\n")
    with Sandbox(source) as sandbox:
        assert "f" not in sandbox.load()
        (answer,) = sandbox.call(
            [{"function": "f", "arguments": {"x": ["raw", 1]}, "want": "plain"}]
        )
    assert answer["value"] == 2


def test_a_pattern_of_constants_is_compiled_and_another_compile_is_not():
    scope = Scope({"re", "torch"}, set())
    of = {text: is_constant(ast.parse(text, mode="eval").body, scope) for text in (
        're.compile("a|b", re.DOTALL)', "torch.compile(x)", "re.compile(read())",
    )}  # fmt: skip
    assert list(of.values()) == [True, False, False]
    shadowed = Scope({"re"}, {"re"})
    assert not is_constant(ast.parse('re.compile("a")', mode="eval").body, shadowed)
