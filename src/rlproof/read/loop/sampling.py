"""How completions are sampled: the arguments of `generate`, vLLM's and TRL's settings."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from rlproof.read.landmarks import called
from rlproof.read.loop.events import is_evaluation
from rlproof.read.loop.passes import Passes, said
from rlproof.read.loop.trace import Frame, Step
from rlproof.read.loop.values import Fixed, Values
from rlproof.read.names import words

SETTINGS = (
    "temperature", "top_p", "top_k", "min_p", "repetition_penalty", "do_sample", "typical_p",
    "epsilon_cutoff", "eta_cutoff", "no_repeat_ngram_size", "min_new_tokens", "min_length",
    "min_tokens", "presence_penalty", "frequency_penalty",
)  # fmt: skip
_MAKERS = {"SamplingParams", "GenerationConfig"}
_OTHERS = {"judge", "reward", "teacher", "ref", "reference", "rm", "verifier", "grader", "critic"}
_TRAINERS = {"GRPOConfig"}
_SCORERS = {
    "log_softmax", "cross_entropy", "logsumexp", "selective_log_softmax", "CrossEntropyLoss",
    "cross_entropy_loss", "Categorical", "logprobs_from_logits", "gather_log_probs",
}  # fmt: skip
_WARPERS = ("LogitsWarper", "top_k_top_p_filtering", "top_p_logits", "top_k_logits")
_HEAT = {"temperature", "temp", "tau", "temperatures"}


@dataclass(frozen=True, slots=True)
class Sampling:
    """One place that says how to sample, with what it fixes."""

    node: ast.AST
    function: str
    settings: dict[str, Fixed]
    unknown: frozenset[str]
    """Settings that it gives, but whose value the source does not fix."""
    trainer: bool = False
    """Whether a framework's trainer takes it, with its own scoring."""


def of_steps(passes: Passes, values: Values) -> list[Sampling]:
    """The sampling of one trace, evaluation left out."""
    found = [
        _read(call, step.frame, passes, values)
        for step in passes.trace.steps
        for call in step.calls()
        if _is_sampling(call) and not _evaluates(step)
    ]
    saying = [s for s in found if s.settings or s.unknown]
    elsewhere = any(called(s.node) in _MAKERS for s in found if isinstance(s.node, ast.Call))
    return saying if elsewhere else found  # what a generate takes is then made elsewhere


def of_classes(tree: ast.Module, values: Values) -> list[tuple[ast.ClassDef, Sampling]]:
    """The `generate` calls of every class, evaluation left out."""
    return [
        (owner, _settings(node, f"{owner.name}.{method.name}", _keywords(node), values, False))
        for owner in ast.walk(tree)
        if isinstance(owner, ast.ClassDef)
        for method in owner.body
        if isinstance(method, ast.FunctionDef | ast.AsyncFunctionDef)
        and not is_evaluation(method.name)
        for node in ast.walk(method)
        if isinstance(node, ast.Call) and called(node) == "generate" and _is_sampling(node)
    ]


def _keywords(call: ast.Call) -> dict[str, ast.expr]:
    return {k.arg: k.value for k in call.keywords if k.arg}


def of_trainers(tree: ast.Module, values: Values) -> list[Sampling]:
    """The settings of TRL's trainer, wherever in the file."""
    return [
        _settings(node, "<module>", {k.arg: k.value for k in node.keywords if k.arg}, values, True)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and called(node) in _TRAINERS
    ]


def _is_sampling(call: ast.Call) -> bool:
    name = called(call)
    if name in _MAKERS:
        return True
    on = call.func.value if isinstance(call.func, ast.Attribute) else None
    return name == "generate" and on is not None and not set(words(said(on))) & _OTHERS


def _evaluates(step: Step) -> bool:
    frame: Frame | None = step.frame
    while frame is not None:
        if is_evaluation(frame.name):
            return True
        frame = frame.caller
    targets = step.node.targets if isinstance(step.node, ast.Assign) else []
    tests = [n for b in step.branches if isinstance(b.node, ast.If) for n in ast.walk(b.node.test)]
    names = [said(n) for n in [*targets, *(t for t in tests if isinstance(t, ast.expr))]]
    return is_evaluation(*names)


def _read(call: ast.Call, frame: Frame, passes: Passes, values: Values) -> Sampling:
    given = {k.arg: k.value for k in call.keywords if k.arg}
    for keyword in call.keywords:
        if keyword.arg is None:
            given |= _dictionary(keyword.value, frame, passes)
    resolved = {name: passes.argument(frame, node)[1] for name, node in given.items()}
    return _settings(call, frame.title, resolved, values, False)


def _dictionary(node: ast.expr, frame: Frame, passes: Passes) -> dict[str, ast.expr]:
    """The entries of `**options`, where it is one literal dictionary."""
    key = frame.key(node)
    written = passes.assigned.of(key) if key else []
    value = written[0][1] if len(written) == 1 else node
    match value:
        case ast.Dict(keys=keys, values=entries):
            return {
                k.value: v
                for k, v in zip(keys, entries, strict=True)
                if isinstance(k, ast.Constant) and isinstance(k.value, str)
            }
        case ast.Call(func=ast.Name(id="dict"), keywords=keywords):
            return {k.arg: k.value for k in keywords if k.arg}
    return {}


def _settings(
    node: ast.AST, function: str, given: dict[str, ast.expr], values: Values, trainer: bool
) -> Sampling:
    fixed = {name: found for name in SETTINGS
             if name in given and (found := values.number(given[name]))}  # fmt: skip
    unknown = frozenset(name for name in SETTINGS if name in given and name not in fixed)
    return Sampling(node, function, fixed, unknown, trainer)


def truncations(sampling: Sampling) -> dict[str, float]:
    """The settings that cut tokens off or reweigh them, with their values."""
    found: dict[str, float] = {}
    for name, fixed in sampling.settings.items():
        x = fixed.value
        if isinstance(x, bool) or not isinstance(x, int | float):
            continue
        cuts = {
            "top_p": 0 < x < 1,
            "top_k": x > 0,
            "min_p": 0 < x < 1,
            "repetition_penalty": x not in (0, 1),
            "typical_p": 0 < x < 1,
            "epsilon_cutoff": 0 < x < 1,
            "eta_cutoff": 0 < x < 1,
            "no_repeat_ngram_size": x > 0,
            "min_new_tokens": x > 1,  # one token at least is the prompt's end, not a length
            "min_length": x > 1,
            "min_tokens": x > 1,
            "presence_penalty": x != 0,
            "frequency_penalty": x != 0,
        }
        if cuts.get(name):
            found[name] = x
    return found


def is_greedy(sampling: Sampling) -> bool:
    """Whether nothing is drawn at random, or that can't be told."""
    greedy = sampling.settings.get("do_sample")
    cold = sampling.settings.get("temperature")
    return (
        "do_sample" in sampling.unknown
        or (greedy is not None and not greedy.value)
        or (cold is not None and cold.value in (0, None))
    )


def scorers(tree: ast.Module) -> list[tuple[ast.Call, ast.AST]]:
    """Every call that turns logits into log-probs, with the function that it stands in."""
    inside: dict[int, ast.AST] = {}
    for node in ast.walk(tree):  # outer functions first, so that the innermost one stays
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            inside |= {id(inner): node for inner in ast.walk(node)}
    replaced = {n.id for n in ast.walk(tree)
                if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}  # fmt: skip
    found = [
        (node, inside.get(id(node), tree))
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and called(node) in _SCORERS
    ]
    return [(call, around) for call, around in found if getattr(around, "name", "") not in replaced]


def is_hot(node: ast.AST) -> bool:
    """Whether an expression speaks of a temperature."""
    names = (getattr(n, "id", getattr(n, "attr", getattr(n, "arg", ""))) for n in ast.walk(node))
    return any(set(words(str(name))) & _HEAT for name in names)


def may_scale(tree: ast.AST) -> bool:
    """Whether logits may be divided anywhere, or a temperature reaches more than the sampler."""
    for node in ast.walk(tree):
        match node:
            case ast.BinOp(op=ast.Div() | ast.Mult(), left=left, right=right):
                if "logit" in ast.unparse(left).lower() or is_hot(left) or is_hot(right):
                    return True
            case ast.AugAssign(op=ast.Div() | ast.Mult(), target=target, value=value):
                if "logit" in ast.unparse(target).lower() or is_hot(value):
                    return True
            case ast.Call(func=ast.Attribute(value=on, attr="div_" | "div" | "mul_" | "mul")):
                if "logit" in ast.unparse(on).lower():
                    return True
            case ast.Call(args=args, keywords=keywords) if not _samples(node):
                given = [k.value for k in keywords]
                if any(set(words(k.arg or "")) & _HEAT for k in keywords):
                    return True
                if any(isinstance(a, ast.Name | ast.Attribute) and is_hot(a) for a in args + given):
                    return True
    return False


def _samples(call: ast.Call) -> bool:
    """Whether a call only hands settings on: to a sampler, a record, a log or a parser."""
    name = called(call)
    if name[:1].isupper() or name in ("add_argument", "dict", "print", "float", "info", "log"):
        return True
    return bool(set(words(name)) & {"generate", "sample", "rollout", "generation", "sampling"})


def warps(text: str) -> bool:
    """Whether the file cuts the scored distribution off too."""
    return any(name in text for name in _WARPERS)
