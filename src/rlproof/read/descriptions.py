"""What a docstring or an annotation says of parameters whose names say nothing.

    adv: advantages of each row, shape (B,)          Google, or a line of its own
    :param lp: log-probs of the current policy       Sphinx
    m : Tensor                                       NumPy, the text on the next line
        1 for completion tokens (loss mask)

and `x: Advantages`, an alias or a class whose name has a role.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator

from rlproof.read.names import Slot, words
from rlproof.read.targets import FunctionNode

_LOG_PROBS = r"log[-_ ]?(prob|likelihood|pi\b)"
_RATIO = r"\bratios?\b|difference"
_WORDS: tuple[tuple[str, Slot], ...] = (
    (r"\badvantages?\b", Slot.ADVANTAGES),
    (r"\bmasks?\b|\b1 (for|where|on|at)\b", Slot.MASK),
    (r"\brewards?\b", Slot.REWARDS),
    (r"\bgroup size\b|\b(completions|samples|rollouts|responses|answers) (per|for each|of each) "
     r"(prompt|question|group)", Slot.GROUP_SIZE),
    (r"\blower (clip|bound)|\bclip\w* (range )?(below|low)", Slot.CLIP_LOW),
    (r"\bupper (clip|bound)|\bclip\w* (range )?(above|high)", Slot.CLIP_HIGH),
    (r"\bclip(ping)?\b.{0,12}\b(range|epsilon|eps|parameter|ratio|radius)\b|\bepsilon of the clip",
     Slot.CLIP),
    (r"\b(kl|divergence)\b.{0,20}\b(coefficient|weight|strength|coef)\b|"
     r"\b(coefficient|weight) of the (kl|divergence)", Slot.BETA),
)  # fmt: skip
_POLICIES: tuple[tuple[str, Slot], ...] = (
    (r"\bcurrent\b|\bnew\b|\bbeing (trained|optimi[sz]ed)|\btrained policy|\bupdated\b|\blearner\b",
     Slot.NEW),
    (r"\bref(erence)?[-_ ](policy|model|log)|\b(of|under|from|by) (a |the )?(frozen |fixed )?"
     r"ref(erence)?\b|\bfrozen\b|\bsft\b|\b(base|initial) (policy|model)", Slot.REF),
    (r"\bold\b|behaviou?r|\brollouts?\b|\bsampler\b|\bsampling (policy|time)|\bprevious\b|"
     r"\bgenerat(ed|ion|ing)\b|\bpolicy that sampled", Slot.OLD),
    (r"", Slot.NEW),
)  # fmt: skip


_ALIASES = {
    "action", "advantage", "advantages", "array", "completion", "current", "group", "log", "logp",
    "logprob", "logprobs", "logps", "loss", "mask", "masks", "new", "old", "per", "policy", "prob",
    "probs", "ref", "reference", "response", "reward", "rewards", "sequence", "tensor", "token",
    "tokens",
}  # fmt: skip


def described(node: FunctionNode, slot_of: Callable[[str], Slot | None]) -> dict[str, Slot]:
    """Slots of the parameters that have none by name; one that two of them claim is nobody's.

    A single letter says less than a description.
    """
    found: dict[str, Slot] = {}
    texts = dict(_texts(node))
    args = node.args
    for arg in (*args.posonlyargs, *args.args, *args.kwonlyargs):
        if slot_of(arg.arg) is None or len(arg.arg) == 1:
            slot = _of_text(texts.get(arg.arg, "")) or _of_annotation(arg.annotation, slot_of)
            if slot is not None:
                found[arg.arg] = slot
    claimed = list(found.values())
    return {name: slot for name, slot in found.items() if claimed.count(slot) == 1}


def _texts(node: FunctionNode) -> Iterator[tuple[str, str]]:
    """Name and description of every parameter that the docstring speaks of."""
    doc = ast.get_docstring(node) or ""
    names = {a.arg for a in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)}
    lines = doc.splitlines()
    for number, line in enumerate(lines):
        for name, text in _entries(line):
            if name in names:
                further = lines[number + 1 : number + 2] if line.rstrip().endswith(text) else []
                deeper = [f for f in further if _indent(f) > _indent(line)]
                yield name, " ".join([text, *deeper]).strip()


def _entries(line: str) -> Iterator[tuple[str, str]]:
    if sphinx := re.match(r"\s*:param\s+(?:\w+\s+)?(\w+)\s*:\s*(.*)", line):
        yield sphinx[1], sphinx[2]
        return
    several = list(re.finditer(r"\b(\w+):\s*([^,;.]+)", line))
    plain = re.match(r"\s*[-*]?\s*`{0,2}(\w+)`{0,2}\s*(?:\([^)]*\))?\s*:\s*(.*)", line)
    if plain and len(several) < 2:
        yield plain[1], plain[2]
        return
    for found in several:
        yield found[1], found[2]


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip()) if line.strip() else 0


def _of_text(text: str) -> Slot | None:
    """The role that a description names first."""
    lower = text.lower()
    spots: list[tuple[int, Slot]] = []
    if (found := re.search(_LOG_PROBS, lower)) and not re.search(_RATIO, lower):
        policy = next(slot for pattern, slot in _POLICIES if re.search(pattern, lower))
        spots.append((found.start(), policy))
    for pattern, slot in _WORDS:
        if spot := re.search(pattern, lower):
            spots.append((spot.start(), slot))
    return min(spots)[1] if spots else None


def _of_annotation(
    annotation: ast.expr | None, slot_of: Callable[[str], Slot | None]
) -> Slot | None:
    """The role of an alias such as `Advantages` or `types.OldLogProbs`."""
    match annotation:
        case ast.Name(id=name) | ast.Attribute(attr=name) if set(words(name)) <= _ALIASES:
            return slot_of(name)
    return None
