"""Functions that the parent put together from a script's own statements, compiled here.

The syntax trees come from the parent over the private pipe, pickled, with the line numbers of
the script, so that what they raise names its lines.
"""

from __future__ import annotations
import __future__ as future

import ast
import base64
import pickle
from collections.abc import Mapping
from types import ModuleType

from rlproof.bind.child.errors import one_line
from rlproof.bind.child.guard import GUARD

_LATE_ANNOTATIONS = future.annotations.compiler_flag


def define(module: ModuleType, packed: Mapping[str, str]) -> dict[str, str]:
    """Make each function an attribute of the module. Returns why some could not be made.

    A function sees the module's names and leaves them as they are.
    """
    reasons: dict[str, str] = {}
    for entry, text in packed.items():
        made: dict[str, object] = {}
        try:
            node = pickle.loads(base64.b64decode(text))
            assert isinstance(node, ast.FunctionDef)
            tree = ast.fix_missing_locations(ast.Module([node], []))
            path = str(module.__file__)
            code = compile(tree, path, "exec", flags=_LATE_ANNOTATIONS, dont_inherit=True)
            with GUARD.strict():
                exec(code, module.__dict__, made)
            setattr(module, entry, made[node.name])
        except BaseException as error:
            reasons[entry] = f"can't be made a function: {one_line(error)}"
    return reasons
