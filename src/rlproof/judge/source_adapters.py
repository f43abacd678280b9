"""A reference that is the base model, where the policy starts from a trained adapter."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from rlproof.faults.model import Severity
from rlproof.judge.source_said import Said, tell
from rlproof.read.landmarks import called
from rlproof.read.loop.reading import FileRead, LoopRead
from rlproof.read.names import words
from rlproof.read.targets import Script

_REF = {"ref", "reference", "refs"}
_TRAINED = re.compile(r"sft|supervised|warm.?start|fine.?tuned", re.IGNORECASE)
_OTHERWISE = ("merge_and_unload", "merge_adapter", "add_adapter", "load_adapter", "set_adapter",
              "use_adapter", "resume", "last_checkpoint")  # fmt: skip


def adapters(script: Script, read: FileRead, loop: LoopRead) -> Iterator[Said]:
    """LOP016: log-probs with the adapter switched off stand for the start of training.

    Only where the file says that the adapter was trained before (`sft` in its path): one that
    begins at zero is the base model, and a resumed one began there.
    """
    del read
    text = script.source.text
    if "disable_adapter" not in text or any(word in text for word in _OTHERWISE):
        return
    loaded = [n for n in ast.walk(script.source.tree) if isinstance(n, ast.Call) and _loads(n)]
    if not loaded:
        return
    for step in loop.trace.steps:
        if not any("disable_adapter" in ast.unparse(context) for context in step.contexts):
            continue
        match step.node:
            case ast.Assign(targets=[ast.Name(id=name)]) if set(words(name)) & _REF:
                yield tell(
                    "LOP016",
                    step,
                    "the policy starts from a trained adapter, and the reference is the model "
                    "without it: the divergence is not 0 before any update, and its gradient "
                    "undoes what the adapter had learned",
                    "reference = base model",
                    "reference = base model with the adapter that training starts from",
                    loaded[0],
                    severity=Severity.NOTE,
                )
                return


def _loads(call: ast.Call) -> bool:
    """`PeftModel.from_pretrained(base, path)` of an adapter that is said to be trained."""
    func = call.func
    on = ast.unparse(func.value) if isinstance(func, ast.Attribute) else ""
    given = " ".join(ast.unparse(a) for a in (*call.args, *(k.value for k in call.keywords)))
    return called(call) == "from_pretrained" and "Peft" in on and bool(_TRAINED.search(given))
