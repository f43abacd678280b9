"""Which claims each line of the tiny trainer rests on, and why it is right.

A line is found by its function and its text, never by its number, so that a change of
`rlproof.tiny` under an entry is noticed.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files

from rlproof.defence.statements import Statement, canonical, statements

MATHEMATICAL = (
    "log_softmax", "token_logps", "group_advantages", "_normalise", "grpo_loss", "grpo_grad",
    "_tally", "_tally_grad", "_tally_clipped", "clip_fraction", "numeric_grad", "_numeric_grpo",
    "_descend", "_softmax", "_clip", "_exp",
)  # fmt: skip
"""Functions of the tiny trainer of which every statement but a trivial one has a ground."""


class UngroundedError(Exception):
    """The tiny trainer no longer has a statement that a ground is given for."""


@dataclass(frozen=True, slots=True)
class Ground:
    """Why one statement is right."""

    function: str
    code: str
    claims: tuple[str, ...]
    why: str


@dataclass(frozen=True, slots=True)
class GroundedLine:
    """A ground where it stands."""

    line: int
    end_line: int
    ground: Ground


def _of(function: str, *rows: tuple[str, str, str]) -> tuple[Ground, ...]:
    return tuple(
        Ground(function, canonical(code), tuple(ids.split()), why) for code, ids, why in rows
    )


_REAL_TOKENS = (
    "D6 E9", "Everything below runs over the real tokens alone: what padding holds is never read."
)  # fmt: skip
GROUNDS: tuple[Ground, ...] = (
    *_of(
        "log_softmax",
        ("top = max(logits)", "E10",
         "Log space holds what products of probabilities would lose, and the largest logit taken "
         "out keeps exp from overflowing."),
        ("z = math.log(sum((math.exp(x - top) for x in logits))) + top", "A1",
         "The normaliser makes the probabilities sum to 1, and a derivative of 1 is what makes "
         "the score average 0."),
        ("return [x - z for x in logits]", "A1 E9",
         "log π = θ − z has the gradient onehot − π, whose entries sum to 0."),
    ),
    *_of(
        "rollout",
        ("length = rng.randint(1, max_len)", "D4",
         "The environment draws the length, so no choice of length weights can bias the "
         "direction."),
        ("seq = rng.choices(range(VOCAB), weights=probs, k=length)", "E4 E5",
         "Tokens come from the whole distribution at the temperature that later scores them; any "
         "other sampler would leave E[score] ≠ 0."),
        ("mask.append([1] * length + [0] * (max_len - length))", "D5 D6",
         "The mask, not the id, says what is padding: PAD = 0 is a real token too."),
        ("rewards.append(seq.count(target(p)) / length)", "D4",
         "Its expectation is π(target) at every length, so V is known exactly."),
    ),
    *_of(
        "token_logps",
        ("tables = {p: log_softmax(theta[p]) for p in set(rows)}", "C1",
         "One function gives new, old and reference log-probs, so that their differences are "
         "log-ratios of the same thing."),
        ("return [[tables[p][tok] for tok in seq] for p, seq in zip(rows, tokens, strict=True)]",
         "C1 E9",
         "Padding gets a log-prob as well; it does no harm, since no sum below reads it."),
    ),
    *_of(
        "group_advantages",
        ("for start in range(0, len(rewards), group_size):", "A18 A3",
         "Each prompt is measured against its own completions: statistics of the whole batch "
         "would mix prompts, though not bias them."),
        ("advantages += _normalise(rewards[start:start + group_size], eps)", "A5 A12",
         "A group's sum of A·score is a contrast between its better and its worse completions."),
    ),
    *_of(
        "_normalise",
        ("if min(group) == max(group):", "A20 A15",
         "Equal rewards carry no signal. A computed std is no test for it: eight times 0.2 has a "
         "std of 3e-17."),
        ("return [0.0] * len(group)", "A15 A21",
         "Exactly 0, also for a group of one; such groups still count in the denominator of the "
         "loss."),
        ("mean = sum(group) / len(group)", "A2 A3 A4",
         "A baseline moves no expectation; that this one contains the own reward costs a factor "
         "(G − 1)/G and no direction."),
        ("std = math.hypot(*(r - mean for r in group)) / math.sqrt(len(group))", "A6 A7",
         "The population standard deviation; the sample one differs by √(G/(G − 1)) and nothing "
         "else."),
        ("return [(r - mean) / (std + eps) for r in group]", "A8 A9 A10 A11 A13",
         "Dividing by the std reweighs prompts: by at most √(G − 1) for binary rewards. With "
         "more reward values it also turns the direction, and can prefer the worse arm."),
    ),
    *_of(
        "grpo_loss",
        ("real = _real_tokens(mask, advantages, new_logps=new_logps, old_logps=old_logps, "
         "ref_logps=ref_logps)", *_REAL_TOKENS),
        ("for i, t in real:", "D6 E9",
         "Slots of padding add nothing to the sum, whatever they hold."),
        ("ratio = _exp(new_logps[i][t] - old_logps[i][t])", "C1 C11",
         "π_new/π_old, taken in logs: value 1 and slope 1 on-policy. For one token at a time it "
         "is exact in this task and first-order right in general."),
        ("surrogate = min(ratio * advantages[i], _clip(ratio, clip_eps) * advantages[i])",
         "C3 C4 C7",
         "The smaller of the two stops only tokens that already went too far, and never the "
         "correction of one; it removes an incentive and is no bound on the ratio."),
        ("log_r = ref_logps[i][t] - new_logps[i][t]", "B1 B17",
         "log(π_ref/π_new), in this order: the other way round estimates another divergence."),
        ("kl = _exp(log_r) - log_r - 1", "B1 B2 B4",
         "k3: never negative, and unbiased for KL(π‖π_ref) in value. Its gradient as a loss is "
         "that of KL(π_ref‖π)."),
        ("total += -surrogate + beta * kl", "C2 B18 B13",
         "A loss is minimised, so what should grow has a minus and the penalty a plus. The two "
         "balance short of reward 1."),
        ("return total / len(real)", "D5 D7 C5",
         "Every real token counts alike. Only real ones are counted: with padding it would be a "
         "factor. On-policy the value need not be 0, though its gradient is right."),
    ),
    *_of(
        "grpo_grad",
        ("_real_tokens(mask, advantages, tokens=tokens, old_logps=old_logps, ref_logps=ref_logps)",
         "D6 E9", "The same batch as in the loss, or none at all."),
        ("cells = _tally(rows, tokens, old_logps, ref_logps, advantages, mask)", "C1 C6",
         "Only the new policy moves with θ: old and reference are constants of the batch."),
        ("return _tally_grad(theta, cells, clip_eps, beta)", "A1 E9",
         "A sum over tokens may be taken in any order, so equal ones come first."),
    ),
    *_of(
        "_tally",
        ("for p, adv, *row in zip(rows, advantages, tokens, old_logps, ref_logps, mask, "
         "strict=True):", "A5", "Every token of a completion carries the advantage of its row."),
        ("for tok, old, ref, m in zip(*row, strict=True):", "C1",
         "Ratio and KL of a token depend on its prompt, its id and these two, and on nothing "
         "else of its row."),
        ("if m:", "D5 D6", "Padding is in no cell, so it is in no sum and in no count."),
        ("sums = cells.setdefault((p, tok, old, ref), [0, 0.0, 0.0])", "C1 C6",
         "Two old policies in one batch would make two cells: nothing is assumed to be equal."),
        ("sums[0] += 1", "D5", "The real tokens, counted for the KL and the denominator."),
        ("sums[1 if adv >= 0 else 2] += adv", "C3",
         "The clip asks for the sign of the advantage alone, so one sum for each is enough."),
    ),
    *_of(
        "_tally_grad",
        ("new = {p: log_softmax(theta[p]) for p in {p for p, *_ in cells}}", "A1 C1",
         "The policy that is trained: the only thing here that θ moves."),
        ("real = sum((n for n, *_ in cells.values()))", "D5 D7",
         "The real tokens of the whole batch, the N of the loss."),
        ("for (p, v, old, ref), (n, good, bad) in cells.items():", "D6 E9",
         "The same slots as in the loss, equal ones at once."),
        ("ratio = _exp(new[p][v] - old)", "C1 C2",
         "The ratio is its own slope along log π, since d exp(x)/dx = exp(x)."),
        ("clipped = _clip(ratio, clip_eps)", "C3",
         "Equal to the ratio inside the band and on its edge, where the slope is the inner one."),
        ("free = (good if ratio <= clipped else 0.0) + (bad if ratio >= clipped else 0.0)",
         "C3 C17",
         "The minimum takes the constant branch just where ρ > 1+ε with A > 0 or ρ < 1−ε with "
         "A < 0. At the kink itself a finite difference would average the two."),
        ("slope = -ratio * free + n * beta * (1 - _exp(ref - new[p][v]))", "C2 B4 B12",
         "−ρ·A, minus since the loss is minimised; and ∂k3/∂log π = 1 − π_ref/π for every token, "
         "which saturates at 1 above the reference and is unbounded below."),
        ("grad[p][v] += slope / real", "D7 E9",
         "onehot of the score onehot − π: a token moves its own logit by its slope."),
        ("for p, logps in new.items():", "E9",
         "A token moves all logits of its own row and none of another prompt's."),
        ("whole = sum(grad[p])", "A1", "Σ over the tokens of the row, each with −π of the score."),
        ("grad[p] = [g - whole * math.exp(logp) for g, logp in zip(grad[p], logps, "
         "strict=True)]", "A1 E9",
         "The chain rule with the score onehot − π; each row of the gradient sums to 0."),
    ),
    *_of(
        "_tally_clipped",
        ("new = {p: log_softmax(theta[p]) for p in {p for p, *_ in cells}}", "C1",
         "The policy after the update."),
        ("real = sum((n for n, *_ in cells.values()))", "D5", "The real tokens."),
        ("ratios = [(_exp(new[p][v] - old), n) for (p, v, old, _), (n, *_) in cells.items()]",
         "C1", "One ratio a cell: its tokens share it."),
        ("return sum((n for ratio, n in ratios if abs(ratio - 1) > clip_eps)) / real", "C8",
         "The unsigned fraction, as `clip_fraction` has it: a share of the real tokens."),
    ),
    *_of(
        "clip_fraction",
        ("real = _real_tokens(mask, None, new_logps=new_logps, old_logps=old_logps)",
         *_REAL_TOKENS),
        ("outside = sum((abs(_exp(new_logps[i][t] - old_logps[i][t]) - 1) > clip_eps "
         "for i, t in real))", "C8",
         "The unsigned fraction: ratios outside the band, also those that the clip does not "
         "hold."),
        ("return outside / len(real)", "C8", "A share of the real tokens."),
    ),
    *_of(
        "numeric_grad",
        ("for row, slopes in zip(theta, grad, strict=True):", "E1",
         "Every logit is moved alone: a partial derivative."),
        ("for v, kept in enumerate(row):", "E2", "The logit is kept, to be put back."),
        ("row[v] = kept + h", "E1 E2",
         "From the kept value, so that no rounding piles up."),
        ("up = f(theta)", "E1", "The value at θ + h."),
        ("row[v] = kept - h", "E1", "As far to the other side, which cancels the h² term."),
        ("slopes[v] = (up - f(theta)) / (2 * h)", "E1 C17",
         "Central: error O(h²) where f is smooth, the mean of both slopes across a kink."),
        ("row[v] = kept", "E2", "Put back to the bit, also when f raises."),
    ),
    *_of(
        "_numeric_grpo",
        ("return grpo_loss(token_logps(th, rows, tokens), *rest, **kw)", "C6",
         "Only the new log-probs follow θ: the old ones are in `rest`, frozen."),
        ("return numeric_grad(loss, theta, h=1e-05)", "E1",
         "About the cube root of the rounding, where truncation and rounding balance."),
    ),
    *_of(
        "train",
        ("ref = [row[:] for row in theta]", "B13 B15",
         "A copy row by row, kept for the whole run: at the start the pull of k3 is 0 on every "
         "sample."),
        ("rows, tokens, mask, rewards = rollout(theta, prompts, group_size, max_len, rng)",
         "C2 C16",
         "Fresh samples of the current policy each step; within the epochs they are reused, "
         "which is optimistic."),
        ("advantages = group_advantages(rewards, group_size)", "A18 A22",
         "Once a step, a constant of the batch: no gradient goes through it."),
        ("old_logps = token_logps(theta, rows, tokens)", "C6",
         "The policy that sampled, fixed before the epochs; taken again inside them every ratio "
         "would be 1 and the clip would never act."),
        ("for _ in range(epochs):", "C11 C16",
         "From the second epoch on the ratio corrects for the move, to first order."),
        ("cells = _tally(*batch)", "C6",
         "Once a step as well: what the updates see of the batch doesn't move with θ."),
        ("_descend(theta, grad, lr)", "C2 E7",
         "The whole gradient is taken before any logit moves."),
        ("stats['clip_frac'] = max(stats['clip_frac'], _tally_clipped(theta, cells, clip_eps))",
         "C2 C8",
         "After the update: before the first one every ratio is 1 and it would show 0."),
    ),
    *_of(
        "_descend",
        ("for row, slopes in zip(theta, grad, strict=True):", "E9",
         "Row by row: a prompt that is absent has a gradient of 0 and stays."),
        ("row[:] = [x - lr * slope for x, slope in zip(row, slopes, strict=True)]", "C2 E7",
         "Down the loss, which is up the reward: ∇L on-policy is −(weight)·∇V plus the pull."),
    ),
    *_of(
        "_softmax",
        ("return [math.exp(x) for x in log_softmax(logits)]", "A1 E10",
         "Through log_softmax, so that it neither overflows nor fails to sum to 1."),
    ),
    *_of(
        "_clip",
        ("return min(max(ratio, 1 - clip_eps), 1 + clip_eps)", "C3 C9",
         "The band is relative: a likely token reaches it by a larger step in probability than a "
         "rare one."),
    ),
    *_of(
        "_exp",
        ("return math.exp(min(x, 700.0))", "C1 E10",
         "The same exp wherever a ratio can occur; only past 700 nats, where floats end, it "
         "stays."),
    ),
)  # fmt: skip


def source() -> str:
    """The source of the tiny trainer, as installed."""
    return files("rlproof").joinpath("tiny.py").read_text("utf-8")


def grounded(text: str | None = None) -> list[GroundedLine]:
    """Every ground with the lines that it stands on, in the order of the source.

    Args:
        text: the source of the tiny trainer; None reads the installed one.

    Raises:
        UngroundedError: a statement is no longer there, or is there twice.
    """
    places: dict[tuple[str, str], list[Statement]] = {}
    for statement in statements(source() if text is None else text):
        places.setdefault((statement.function, statement.code), []).append(statement)
    found = []
    for ground in GROUNDS:
        here = places.get((ground.function, ground.code), [])
        if len(here) != 1:
            times = f"{len(here)} times" if here else "nowhere"
            raise UngroundedError(f"{ground.function}: {ground.code!r} stands {times}")
        found.append(GroundedLine(here[0].line, here[0].end_line, ground))
    return sorted(found, key=lambda one: one.line)


def ungrounded(text: str | None = None) -> list[Statement]:
    """Statements of the `MATHEMATICAL` functions that compute something and have no ground."""
    known = {(ground.function, ground.code) for ground in GROUNDS}
    return [
        s
        for s in statements(source() if text is None else text)
        if s.function in MATHEMATICAL and not s.trivial and (s.function, s.code) not in known
    ]
