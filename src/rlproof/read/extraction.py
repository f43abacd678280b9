"""Functions that ask a language model for the log-probs of tokens, and what they are given.

`get_per_token_logps(model, input_ids, attention_mask, logits_to_keep)` and its kin. What a
parameter carries is read off its name first, then off what the function does with it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from rlproof.read.landmarks import called
from rlproof.read.names import Slot, is_logp, objective_slot, words
from rlproof.read.parameters import parameters
from rlproof.read.targets import FunctionNode, Parameter, Role, Script, Target

_MODEL = {
    "model", "policy", "actor", "lm", "llm", "net", "network", "module", "reference", "ref",
    "engine", "learner", "agent",
}  # fmt: skip
_PROMPT = {"prompt", "prompts", "query", "queries", "question", "questions", "context"}
_COMPLETION = {
    "completion", "completions", "response", "responses", "action", "actions", "generation",
    "generations", "generated", "gen", "answer", "answers", "output", "outputs", "reply",
}  # fmt: skip
_LENGTHS = {
    "lengths", "lens", "seq_lens", "seq_lengths", "seqlens", "row_lengths", "sequence_lengths",
    "input_lengths", "input_lens", "text_lengths",
}  # fmt: skip
"""Real tokens of every row, which is padded on the right."""
_COUNTS = {
    "len", "lens", "length", "lengths", "size", "start", "starts", "idx", "index", "offset", "num",
    "n", "end", "width",
}  # fmt: skip
_IDS = {"id", "ids", "token", "tokens", "tensor", "tensors", "input"}
_WHOLE = {
    "input_ids", "ids", "tokens", "token_ids", "sequences", "sequence", "seqs", "seq", "full_ids",
    "output_ids", "all_tokens", "all_ids", "x", "idx", "tok", "toks", "inputs", "samples",
    "input_tokens", "batch_ids", "generated_ids", "packed_ids", "sequence_ids", "seq_ids",
    "sequences_ids", "input", "x_ids", "trajectory", "trajectories",
}  # fmt: skip
_LABELS = {"labels", "label", "targets", "target", "target_ids", "label_ids", "shifted_labels"}
_CHUNKS = {
    "batch_size", "micro_batch_size", "mini_batch_size", "chunk_size", "forward_batch_size",
    "mb_size", "minibatch_size", "micro_bs", "chunk", "logits_chunk_size", "rows_per_chunk",
}  # fmt: skip
_TABLES = {
    "batch", "inputs", "data", "micro_batch", "mb", "encoded", "encoding", "encodings", "sample",
    "samples", "features", "rollout", "rollouts", "experience", "model_inputs", "minibatch",
    "mini_batch", "tokenized", "episode", "batch_data",
}  # fmt: skip
_TOKENS = (Slot.TOKENS, Slot.COMPLETION_TOKENS, Slot.LABELS)
_PICKERS = {"gather", "take_along_dim", "cross_entropy", "nll_loss", "log_prob"}
_NORMALISERS = {"log_softmax", "softmax", "logsumexp", "cross_entropy", "Categorical"}
_OTHER_PARTS = {
    "loss", "train", "training", "entropy", "kl", "kld", "perplexity", "ppl", "reward", "rewards",
    "step", "generate", "sample", "rollout", "rollouts", "main", "eval", "advantage",
    "advantages", "value", "values", "sampling", "test", "update",
}  # fmt: skip
_OTHER_KINDS = {"pixel", "pixels", "image", "images", "video", "audio", "mm", "tile", "tiles"}
_NO_PART = (Slot.ADVANTAGES, Slot.REWARDS, Slot.OLD, Slot.REF)


@dataclass(frozen=True, slots=True)
class Keys:
    """What is read from a parameter that carries tensors by name: the slot of every key."""

    slots: dict[str, Slot]
    unknown: tuple[str, ...]


def extraction_target(node: FunctionNode) -> Target | None:
    """The function as one that scores tokens with a model, or None if it is none."""
    parts = set(words(node.name))
    spoken = names_log_probs(node.name)
    if parts & {"loss", "kl", "kld", "train", "generate", "ratio", "reward", "rewards"} or (
        not spoken and parts & _OTHER_PARTS
    ):
        return None
    found = tuple(_settled(node, parameters(node, lambda name: _slot(node, name))))
    target = Target(Role.LOG_PROBS, node, found)
    if not target.has(Slot.MODEL) or not any(_carries_tokens(target, p) for p in found):
        return None
    if any(objective_slot(p.name) in _NO_PART for p in found if p.slot is None):
        return None
    known = not any(p.required and not p.slot and not p.name.startswith("self_") for p in found)
    return target if spoken or (known and _scores(node)) else None


def names_log_probs(name: str) -> bool:
    """Whether a function's name promises log-probabilities of tokens."""
    parts = words(name)
    pairs = set(pairwise(parts))
    long = {("log", "probabilities"), ("log", "probability"), ("log", "likelihoods"),
            ("log", "likelihood")}  # fmt: skip
    picks = ("log", "softmax") in pairs and bool(
        set(parts) & {"gather", "selective", "select", "token", "tokens", "gathered"}
    )
    return is_logp(name) or bool(pairs & long) or picks


def pads_left(script: Script, slots: frozenset[Slot]) -> bool:
    """Whether prompts are surely padded on the left.

    The script says so, or the function takes a mask of prompts apart from the completions,
    whose columns begin where the prompts' end.
    """
    said = any(
        isinstance(n, ast.Constant) and n.value == "left" for n in ast.walk(script.source.tree)
    )
    return said or Slot.PROMPT_MASK in slots


def _scores(node: FunctionNode) -> bool:
    """Whether the function normalises scores and picks those of tokens, or has it done."""
    names = {called(n) for n in ast.walk(node) if isinstance(n, ast.Call)}
    asks = any(
        (isinstance(n, ast.Attribute) and n.attr == "logits")
        or (isinstance(n, ast.Constant) and n.value == "logits")
        for n in ast.walk(node)
    )
    done = any(map(names_log_probs, names))
    return asks and (done or (bool(names & _PICKERS) and bool(names & _NORMALISERS)))


def keys_of(node: FunctionNode, name: str) -> Keys:
    """The keys that the function reads of one parameter, with their slots."""
    known: dict[str, Slot] = {}
    unknown: list[str] = []
    for key in _keys(node, name):
        slot = key_slot(node, key)
        if slot is None:
            unknown.append(key)
        else:
            known[key] = slot
    if _is_spread(node, name):
        known |= {"input_ids": Slot.TOKENS, "attention_mask": Slot.ATTENTION}
    return Keys(known, tuple(dict.fromkeys(unknown)))


def key_slot(node: FunctionNode, key: str) -> Slot | None:
    """The slot of a key or of a parameter, by its name alone; a bare mask by its use."""
    slot = _named(key)
    if slot is Slot.MASK:
        return Slot.ATTENTION if _is_attended(node, key) else Slot.COMPLETION_MASK
    return slot


def _slot(node: FunctionNode, name: str) -> Slot | None:
    if _is_model(node, name):
        return Slot.MODEL
    if name in _TABLES and (keys_of(node, name).slots or keys_of(node, name).unknown):
        return Slot.TENSORS
    return key_slot(node, name)


def _named(name: str) -> Slot | None:
    lower, parts = "_".join(words(name)), set(words(name))
    lower = lower.removeprefix("self_")
    if parts & _OTHER_KINDS:
        return None
    if lower in _CHUNKS:
        return Slot.CHUNK
    if parts & {"temperature", "temp", "tau"}:
        return Slot.TEMPERATURE
    if parts & {"mask", "masks"}:
        return _mask(parts)
    if parts & {"position", "positions"} and parts & {"ids", "positions"}:
        return Slot.POSITIONS
    if lower == "device":
        return Slot.DEVICE
    if lower in {"tokenizer", "processing_class", "tok_", "processor"}:
        return Slot.TOKENIZER
    if parts & {"pad", "padding"} and parts & {"id", "pad"} and not parts & {"side", "free"}:
        return Slot.PAD
    if parts & {"eos"}:
        return Slot.EOS
    if parts & {"return", "compute", "calculate", "with", "need", "needs", "is", "use", "enable"}:
        return Slot.SWITCH
    if lower in _LENGTHS:
        return Slot.LENGTHS
    return _count(lower, parts) or _tokens(lower, parts)


def _mask(parts: set[str]) -> Slot:
    if parts & {"attention", "attn", "pad", "padding", "input"}:
        return Slot.ATTENTION
    if parts & _PROMPT and parts & _COMPLETION:
        return Slot.MASK
    if parts & _PROMPT:
        return Slot.PROMPT_MASK
    if parts & (_COMPLETION | {"loss", "label", "labels", "assistant", "target", "reply"}):
        return Slot.COMPLETION_MASK
    return Slot.MASK


def _count(lower: str, parts: set[str]) -> Slot | None:
    """`prompt_len` counts the tokens of the prompt, `logits_to_keep` those of the completion."""
    if lower in {"logits_to_keep", "num_logits_to_keep", "keep", "num_actions", "action_len"}:
        return Slot.KEEP
    if not parts & _COUNTS or parts & {"max", "total", "min", "vocab"}:
        return None
    if parts & {"start", "starts"} and parts & (_COMPLETION | _PROMPT | {"idx", "index", "pos"}):
        return None if parts & _PROMPT and not parts & {"len"} else Slot.START
    if parts & _PROMPT and not parts & {"idx", "index"}:
        return Slot.START
    return Slot.KEEP if parts & _COMPLETION and not parts & {"idx", "index"} else None


def _tokens(lower: str, parts: set[str]) -> Slot | None:
    if lower in _LABELS:
        return Slot.LABELS
    if lower in _WHOLE:
        return Slot.TOKENS
    carries = bool(parts & _IDS) or len(parts) <= 2
    if not carries or parts & {"text", "texts", "str", "mask", "list"}:
        return None
    both = parts & _PROMPT, parts & _COMPLETION
    if all(both) or (any(both) and parts & {"full", "all", "sequence"}):
        return Slot.TOKENS
    if parts & _PROMPT and parts - _PROMPT <= _IDS | {"b", "t"}:
        return Slot.PROMPT_TOKENS
    if parts & _COMPLETION and parts - _COMPLETION <= _IDS | {"b", "t"}:
        return Slot.COMPLETION_TOKENS
    return None


def _settled(node: FunctionNode, found: tuple[Parameter, ...]) -> Iterator[Parameter]:
    """What only shows beside the other parameters: whose tokens they are."""
    slots = {p.slot for p in found}
    for p in found:
        slot = p.slot
        if slot is Slot.COMPLETION_TOKENS and not slots & {Slot.TOKENS, Slot.PROMPT_TOKENS}:
            slot = Slot.TOKENS
        if slot is Slot.TOKENS and Slot.PROMPT_TOKENS in slots and _is_joined(node, p.name):
            slot = Slot.COMPLETION_TOKENS
        if slot is Slot.LABELS and not slots & {Slot.TOKENS, Slot.TENSORS}:
            slot = Slot.TOKENS
        if slot is None and p.required:
            slot = _cut(node, p.name)
        yield Parameter(p.name, slot, p.required, p.default)


def _cut(node: FunctionNode, name: str) -> Slot | None:
    """`x[:, -n:]` counts what is kept, `x[:, n:]` what is left out, whatever n is called."""
    cuts = [n.lower for n in ast.walk(node) if isinstance(n, ast.Slice) and n.lower is not None]
    kept = any(isinstance(c, ast.UnaryOp) and isinstance(c.operand, ast.Name)
               and c.operand.id == name for c in cuts)  # fmt: skip
    left_out = any(isinstance(c, ast.Name) and c.id == name for c in cuts)
    if kept == left_out:
        return None
    return Slot.KEEP if kept else Slot.START


def _carries_tokens(target: Target, parameter: Parameter) -> bool:
    if parameter.slot is Slot.TENSORS:
        known = keys_of(target.node, parameter.name).slots.values()
        return any(slot in _TOKENS for slot in known)
    return parameter.slot in _TOKENS


def _is_model(node: FunctionNode, name: str) -> bool:
    """Called like a model, or named like one and handed on without being indexed."""
    is_called = indexed = asked = False
    for inner in ast.walk(node):
        match inner:
            case ast.Call(func=ast.Name(id=callee)) if callee == name:
                is_called = True
            case ast.Assign(value=ast.Name(id=base)) if base == name:
                asked = True
            case ast.Subscript(value=ast.Name(id=base)) if base == name:
                indexed = True
            case ast.BinOp(left=ast.Name(id=one)) | ast.BinOp(right=ast.Name(id=one)) if (
                one == name
            ):
                indexed = True
            case ast.Attribute(value=ast.Name(id=base), attr=attr) if base == name:
                asked |= attr in {"forward", "module", "model", "config", "eval", "train", "device",
                                  "training", "parameters", "lm_head", "base_model"}  # fmt: skip
            case ast.Call(args=args, keywords=keywords):
                given = [*args, *(k.value for k in keywords)]
                asked |= any(isinstance(a, ast.Name) and a.id == name for a in given)
    named = bool(set(words(name)) & _MODEL) and not names_log_probs(name)
    return not indexed and named and (is_called or asked)


def may_be_model(name: str) -> bool:
    """Whether an attribute is named like a model."""
    parts = words(name)
    return bool(parts) and parts[-1] in _MODEL and not names_log_probs(name)


def _is_attended(node: FunctionNode, name: str) -> bool:
    """Whether something of that name is given to a call as its attention mask."""
    fed = {name}
    for inner in ast.walk(node):
        if isinstance(inner, ast.Assign) and _mentions(inner.value, fed):
            fed |= {t.id for t in inner.targets if isinstance(t, ast.Name) and "mask" in t.id}
    for inner in ast.walk(node):
        if isinstance(inner, ast.keyword) and inner.arg in ("attention_mask", "attn_mask"):
            if _mentions(inner.value, fed):
                return True
        if isinstance(inner, ast.Call) and any(_is_model(node, name) for name in _parts(inner)):
            if any(_mentions(argument, fed) for argument in inner.args[1:]):
                return True
    return False


def _parts(call: ast.Call) -> list[str]:
    """Names that a call may ask a model through: what is called, or what is given to it."""
    given = [a.id for a in call.args if isinstance(a, ast.Name)]
    func = call.func
    while isinstance(func, ast.Attribute):
        func = func.value
    return [*given, func.id] if isinstance(func, ast.Name) else given


def _mentions(node: ast.AST, names: set[str]) -> bool:
    return any(
        (isinstance(n, ast.Name) and n.id in names)
        or (isinstance(n, ast.Constant) and n.value in names)
        for n in ast.walk(node)
    )


def _is_joined(node: FunctionNode, name: str) -> bool:
    """Whether it is one of the things that a concatenation puts together."""
    for inner in ast.walk(node):
        if isinstance(inner, ast.Call) and called(inner) in {"cat", "concat", "concatenate"}:
            if _mentions(inner, {name}):
                return True
        if isinstance(inner, ast.BinOp) and isinstance(inner.op, ast.Add):
            if isinstance(inner.right, ast.Name) and inner.right.id == name:
                return True
    return False


def _keys(node: FunctionNode, name: str) -> Iterator[str]:
    for inner in ast.walk(node):
        match inner:
            case ast.Subscript(value=ast.Name(id=base), slice=ast.Constant(value=str() as key)) if (
                base == name
            ):
                yield key
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id=base), attr="get" | "pop"),
                args=[ast.Constant(value=str() as key), *_],
            ) if base == name:
                yield key
            case ast.Attribute(value=ast.Name(id=base), attr=attr) if base == name:
                if _named(attr) is not None:
                    yield attr


def _is_spread(node: FunctionNode, name: str) -> bool:
    return any(
        isinstance(n, ast.keyword)
        and n.arg is None
        and isinstance(n.value, ast.Name)
        and n.value.id == name
        for n in ast.walk(node)
    )
