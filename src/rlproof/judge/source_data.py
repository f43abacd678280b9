"""How completions are sampled, masked, repeated and grouped."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from rlproof.judge.source_said import Said, tell, tell_at, undecided
from rlproof.read.landmarks import place
from rlproof.read.loop.masks import pad_is_eos, value_masks
from rlproof.read.loop.order import groupings, reorders, repetitions
from rlproof.read.loop.passes import Passes, attributes
from rlproof.read.loop.reading import FileRead, LoopRead
from rlproof.read.loop.sampling import (
    Sampling,
    is_greedy,
    may_scale,
    of_classes,
    of_steps,
    of_trainers,
    scorers,
    truncations,
    warps,
)
from rlproof.read.loop.trace import Definitions, traces
from rlproof.read.names import is_logp
from rlproof.read.targets import Script

_TRAINS = re.compile(r"grpo|advantage|\bppo\b|reinforce", re.IGNORECASE)
_ADVANTAGES = re.compile(r"advantage|\badvs?\b", re.IGNORECASE)


def truncation(script: Script, read: FileRead, loop: LoopRead) -> Iterator[Said]:
    """SMP001: sampled from a truncated distribution, scored with the whole one."""
    scored = scorers(script.source.tree)
    if not scored or warps(script.source.text) or not _weighs(script):
        return
    for sampling in of_steps(loop.passes, read.values):
        if cuts := truncations(sampling) if not is_greedy(sampling) else {}:
            yield _truncated(sampling, cuts, scored[0][0])


def _weighs(script: Script) -> bool:
    """Whether log-probs are weighted by advantages: imitating good samples needs no more."""
    return _ADVANTAGES.search(script.source.text) is not None


def trainer_sampling(script: Script, read: FileRead) -> Iterator[Said]:
    """SMP001 for the settings of TRL's trainer, which scores with the whole distribution."""
    for sampling in of_trainers(script.source.tree, read.values):
        if cuts := truncations(sampling):
            yield _truncated(sampling, cuts, None)


def _truncated(sampling: Sampling, cuts: dict[str, float], scorer: ast.AST | None) -> Said:
    shown = ", ".join(f"{name} = {value:g}" for name, value in cuts.items())
    whose = "the log-probs below" if scorer is not None else "the trainer's log-probs"
    node = next(iter(sampling.settings[name].node for name in cuts))
    others = [n for n in (scorer, node) if n is not None and hasattr(n, "lineno")]
    return tell_at(
        "SMP001",
        place(sampling.function, sampling.node),
        sampling.node,
        f"completions are sampled with {shown}, and {whose} are those of the full distribution: "
        "they are not the probabilities that the tokens were drawn with",
        f"sampled with {shown}",
        "the full distribution: no cut, no penalty, no forced length",
        *others,
    )


def scoring_temperature(script: Script, read: FileRead, loop: LoopRead) -> Iterator[Said]:
    """LGP001: sampled at one temperature, scored at another."""
    scored = scorers(script.source.tree)
    if not scored or not _weighs(script):
        return
    drawn = [s for s in of_steps(loop.passes, read.values) if not is_greedy(s)]
    warm = [s for s in drawn if "temperature" in s.settings]
    values = {s.settings["temperature"].value for s in warm}
    if any("temperature" in s.unknown for s in drawn) or len(values) != 1 or values <= {1}:
        return
    if len(warm) != len(drawn) or may_scale(script.source.tree):
        return
    (heat,) = values
    call, _ = scored[0]
    for sampling in warm:
        yield tell_at(
            "LGP001",
            place(sampling.function, sampling.node),
            sampling.node,
            f"completions are sampled at temperature {heat:g}, and log-probs are computed from "
            "logits that nothing divides by it",
            f"sampled at {heat:g}, scored at 1",
            "logits / temperature before the log-softmax",
            call,
        )


def class_temperature(script: Script, read: FileRead) -> Iterator[Said]:
    """LGP001 for a class that samples in one method and scores in another, without a loop."""
    if not _TRAINS.search(script.source.text) or may_scale(script.source.tree):
        return
    scored = scorers(script.source.tree)
    for owner, sampling in of_classes(script.source.tree, read.values):
        heat = sampling.settings.get("temperature")
        own = [(call, home) for call, home in scored if home in owner.body]
        others = [s for o, s in of_classes(script.source.tree, read.values) if o is owner]
        if heat is None or heat.value in (0, 1, None) or is_greedy(sampling) or not own:
            continue
        call, home = own[0]
        name = getattr(home, "name", "")
        if len(others) > 1 or len(own) > 1 or not is_logp(name):
            continue
        yield tell_at(
            "LGP001",
            place(f"{owner.name}.{name}", call),
            call,
            f"completions are sampled at temperature {heat.value:g}, and log-probs are computed "
            "from logits that nothing divides by it",
            f"sampled at {heat.value:g}, scored at 1",
            "logits / temperature before the log-softmax",
            sampling.node,
            heat.node,
        )


def masks(script: Script, read: FileRead, loop: LoopRead) -> Iterator[Said]:
    """MSK004: EOS counts as padding, so that it is never trained."""
    del read
    same = pad_is_eos(script.source.tree)
    for mask in value_masks(loop.passes):
        if mask.against == "eos" or (same is not None and same.always):
            others = [same.node] if same is not None and mask.against == "pad" else []
            why = "padding is the end-of-sequence token" if others else "it is compared with EOS"
            yield tell(
                "MSK004",
                mask.step,
                f"`{mask.name}` is 0 wherever the token has that id, and {why}: the token that "
                "ends a completion is masked with the padding and never trained",
                "EOS out of the loss",
                "a mask from positions: everything up to the first EOS",
                *others,
            )
        elif same is not None:
            reason = "whether padding is EOS depends on the tokenizer"
            yield undecided(
                "MSK004", mask.step, f"{reason} (line {getattr(same.node, 'lineno', 0)})"
            )


def method_orders(script: Script, read: FileRead) -> Iterator[Said]:
    """ADV002 where the update is a framework's: methods that repeat prompts and group rewards."""
    tree, text = script.source.tree, script.source.text
    if "repeat" not in text or "reward" not in text:
        return
    names = attributes(Definitions(tree))
    for word in ("view", "reshape"):
        for trace in traces(tree, word) if f".{word}(" in text else ():
            if trace.complete:
                yield from orders(script, read, LoopRead(trace, Passes(trace, names), ()))


def orders(script: Script, read: FileRead, loop: LoopRead) -> Iterator[Said]:
    """ADV002: prompts come in one order, and rewards are grouped by another."""
    del script, read
    made, cut = repetitions(loop.passes), groupings(loop.passes)
    orders_made = {o.order for o in made}
    if not made or not cut or len(orders_made) != 1:
        return
    firsts = {(o.step.frame.number, o.order, o.size): o for o in reversed(cut)}
    for group in reversed(firsts.values()):
        source = made[0]
        if group.order == source.order or group.step.number < source.step.number:
            continue
        if {o.size for o in made} != {group.size}:
            yield undecided("ADV002", group.step, "the two sizes of a group have different names")
        elif reorders(loop.passes, source.step, group.step):
            yield undecided("ADV002", group.step, "rows are reordered between prompts and rewards")
        else:
            order = {"tiled": "A, B, A, B", "consecutive": "A, A, B, B"}
            yield tell(
                "ADV002",
                group.step,
                f"prompts are repeated in the order {order[source.order]}, and rewards are cut "
                f"into groups as if it were {order[group.order]}: a group mixes prompts",
                f"rows in the order {order[source.order]}",
                f"groups for the order {order[source.order]}",
                source.step.node,
            )
