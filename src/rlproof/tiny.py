"""Group Relative Policy Optimization (GRPO) on a table of logits, in plain Python.

The policy is a table: theta[p][v] is the logit of token v for prompt p. A completion is one to
max_len tokens drawn independently from softmax(theta[p]); its reward is the share of its tokens
that equal the prompt's target. Everything a real trainer does is here and nothing else: sample,
score against the group, clip the policy ratio, stay near a reference, descend.

Shapes, with the letters used below:
    B  rows, one per completion (B = P·G)      T  tokens per row, padding included
    P  prompts per step                        V  vocabulary, VOCAB tokens
    G  completions per prompt, the group       N  real tokens in the batch, Σ mask
Log-probabilities, log-ratios and KL are in nats. mask is 1 on real tokens, 0 on padding.

Departures from the paper (DeepSeekMath, arXiv:2402.03300, section 4.1), each on purpose:
    1. The loss is the mean over the N real tokens of the batch. The paper averages each
       completion over its own length first, then averages over the group.
    2. Advantages divide by std + eps, not std, and a group of equal rewards gets exactly 0. The
       paper does not say which std or what to do when it is 0; here the divisor is G.
    3. The reference is the initial policy for the whole run; the paper's outer loop renews it.
    4. Every step takes all the prompts and plain gradient descent on the whole batch, where the
       paper samples prompts and leaves the optimizer open.
    5. The environment draws the length of a completion, uniform on 1..max_len. There is no end
       token, so the policy cannot choose to be short or long.
    6. A log-ratio above 700 nats counts as 700 inside exp, so that it cannot overflow. At
       the default settings no log-ratio passes 10.
"""

import math
import random
from collections.abc import Callable, Sequence
from typing import Any, Literal

VOCAB = 4
PAD = 0  # a real token too: only the mask tells padding from token 0

Table = list[list[float]]
Rows = Sequence[Sequence[float]]
_Ids = Sequence[Sequence[int]]


def log_softmax(logits: Sequence[float]) -> list[float]:
    """Return ``log π(v) = θ_v − log Σ_u exp θ_u`` for one row of logits (V to V, nats)."""
    top = max(logits)  # taken out of the sum, so that exp cannot overflow
    z = math.log(sum(math.exp(x - top) for x in logits)) + top
    return [x - z for x in logits]


def rollout(
    theta: Table, prompts: Sequence[int], group_size: int, max_len: int, rng: random.Random
) -> tuple[list[int], list[list[int]], list[list[int]], list[float]]:
    """Sample group_size completions for every prompt, rows grouped by prompt.

    ``L ~ U{1..max_len}``, ``o_t ~ softmax(θ_p)``, ``R = Σ_t 1[o_t = target(p)] / L``. As L does
    not depend on the tokens, the expected reward of a prompt is ``π_p(target(p))``.

    Returns prompt ids (B), tokens (B x T, T = max_len), mask (B x T), rewards in [0, 1] (B).
    Raises ValueError for no prompts, a prompt without a row in theta, group_size or max_len < 1.
    """
    _check_prompts(prompts, theta)
    _require(group_size >= 1, f"group_size is {group_size}, expected 1 or more; raise it")
    _require(max_len >= 1, f"max_len is {max_len}, expected 1 or more; raise it")
    rows, rewards = list[int](), list[float]()
    tokens, mask = list[list[int]](), list[list[int]]()
    for p in prompts:
        probs = _softmax(theta[p])
        for _ in range(group_size):
            length = rng.randint(1, max_len)
            seq = rng.choices(range(VOCAB), weights=probs, k=length)
            rows.append(p)
            tokens.append(seq + [PAD] * (max_len - length))
            mask.append([1] * length + [0] * (max_len - length))
            rewards.append(seq.count(target(p)) / length)
    return rows, tokens, mask, rewards


def target(prompt: int) -> int:
    """Return the token that earns reward for this prompt: ``prompt mod V``."""
    return prompt % VOCAB


def token_logps(theta: Table, rows: Sequence[int], tokens: _Ids) -> Table:
    """Return ``log π_p(token)`` at every position, padding included (B x T, nats).

    Raises ValueError when rows and tokens differ in length.
    """
    _check_length("tokens", tokens, len(rows))
    tables = {p: log_softmax(theta[p]) for p in set(rows)}
    return [[tables[p][tok] for tok in seq] for p, seq in zip(rows, tokens, strict=True)]


def group_advantages(rewards: Sequence[float], group_size: int, eps: float = 1e-6) -> list[float]:
    """Return one advantage per completion, measured against its own group (B to B, no unit).

    ``A_i = (r_i − mean(r)) / (std(r) + eps)`` over each run of group_size rewards. They sum to 0
    in every group, and a group with nothing to compare (all rewards equal, or one member) gets
    exactly 0.0. Source: DeepSeekMath, arXiv:2402.03300, section 4.1.2.

    Raises ValueError for no rewards, one that is not finite, or a group_size that is below 1 or
    does not divide their number.
    """
    _check_groups(rewards, group_size)
    advantages: list[float] = []
    for start in range(0, len(rewards), group_size):
        advantages += _normalise(rewards[start : start + group_size], eps)
    return advantages


def _normalise(group: Sequence[float], eps: float) -> list[float]:
    if min(group) == max(group):  # not std == 0: eight times 0.2 averages to just below 0.2
        return [0.0] * len(group)
    mean = sum(group) / len(group)
    std = math.hypot(*(r - mean for r in group)) / math.sqrt(len(group))
    return [(r - mean) / (std + eps) for r in group]


def grpo_loss(
    new_logps: Rows,
    old_logps: Rows,
    ref_logps: Rows,
    advantages: Sequence[float],
    mask: Rows,
    clip_eps: float = 0.2,
    beta: float = 0.04,
) -> float:
    """Return the GRPO loss, to be minimized.

    ``L = (1/N) Σ_{i,t: mask=1} [ −min(ρ A_i, clip(ρ, 1−ε, 1+ε) A_i) + β k3 ]`` with
    ``ρ = exp(new − old)`` and ``k3 = exp(ref − new) − (ref − new) − 1 ≥ 0``, an estimate of
    KL(π_new ‖ π_ref) that is unbiased when the tokens come from π_new.

    new_logps (trained policy), old_logps (the policy that sampled, fixed), ref_logps and mask are
    B x T, advantages B; ε is clip_eps, β is beta. Padding takes part in nothing.

    Raises ValueError for an empty batch, arrays that do not share one B x T shape, a mask entry
    other than 0 or 1, or no real token.

    Sources: GRPO, arXiv:2402.03300, equations 3, 4; the clip, PPO, arXiv:1707.06347, equation 7;
    k3, Schulman, "Approximating KL Divergence", http://joschu.net/blog/kl-approx.html.
    """
    real = _real_tokens(
        mask, advantages, new_logps=new_logps, old_logps=old_logps, ref_logps=ref_logps
    )
    total = 0.0
    for i, t in real:
        ratio = _exp(new_logps[i][t] - old_logps[i][t])
        surrogate = min(ratio * advantages[i], _clip(ratio, clip_eps) * advantages[i])
        log_r = ref_logps[i][t] - new_logps[i][t]
        kl = _exp(log_r) - log_r - 1
        total += -surrogate + beta * kl
    return total / len(real)


def grpo_grad(
    theta: Table,
    rows: Sequence[int],
    tokens: _Ids,
    old_logps: Rows,
    ref_logps: Rows,
    advantages: Sequence[float],
    mask: Rows,
    clip_eps: float = 0.2,
    beta: float = 0.04,
) -> Table:
    """Return the gradient of `grpo_loss` with respect to theta in closed form (theta's shape).

    ``∂L/∂θ_pv = (1/N) Σ_{i of p, t: mask=1} s_it · (1[o_it = v] − π_p(v))`` with
    ``s = −ρ A · 1[ρ A ≤ clip(ρ) A] + β (1 − exp(ref − new))``, the slope along new_logps.

    The indicator is 0 only where the clip holds the token: ρ > 1+ε and A > 0, or ρ < 1−ε and
    A < 0. On the edge itself the loss has a kink; the slope from inside the range is returned.
    Errors and sources: see `grpo_loss`.
    """
    _check_length("rows", rows, len(mask))
    _real_tokens(mask, advantages, tokens=tokens, old_logps=old_logps, ref_logps=ref_logps)
    cells = _tally(rows, tokens, old_logps, ref_logps, advantages, mask)
    return _tally_grad(theta, cells, clip_eps, beta)


# Tokens that share prompt p, id v, old and ref share their ratio and KL too, wherever theta goes:
# they are one cell (p, v, old, ref), and all that a gradient needs of them is three sums:
# how many they are, Σ of their advantages ≥ 0, Σ of those < 0. There are at most P·V cells in a
# batch of `train`, however many tokens, and they are added up once for all its updates.
_Cells = dict[tuple[int, int, float, float], list[float]]


def _tally(
    rows: Sequence[int],
    tokens: _Ids,
    old_logps: Rows,
    ref_logps: Rows,
    advantages: Sequence[float],
    mask: Rows,
) -> _Cells:
    cells: _Cells = {}
    for p, adv, *row in zip(rows, advantages, tokens, old_logps, ref_logps, mask, strict=True):
        for tok, old, ref, m in zip(*row, strict=True):
            if m:
                sums = cells.setdefault((p, tok, old, ref), [0, 0.0, 0.0])
                sums[0] += 1
                sums[1 if adv >= 0 else 2] += adv
    return cells


def _tally_grad(theta: Table, cells: _Cells, clip_eps: float = 0.2, beta: float = 0.04) -> Table:
    new = {p: log_softmax(theta[p]) for p in {p for p, *_ in cells}}
    real = sum(n for n, *_ in cells.values())
    grad = [[0.0] * len(row) for row in theta]
    for (p, v, old, ref), (n, good, bad) in cells.items():
        ratio = _exp(new[p][v] - old)
        clipped = _clip(ratio, clip_eps)
        free = (good if ratio <= clipped else 0.0) + (bad if ratio >= clipped else 0.0)
        slope = -ratio * free + n * beta * (1 - _exp(ref - new[p][v]))
        grad[p][v] += slope / real
    for p, logps in new.items():
        whole = sum(grad[p])
        grad[p] = [g - whole * math.exp(logp) for g, logp in zip(grad[p], logps, strict=True)]
    return grad


def _tally_clipped(theta: Table, cells: _Cells, clip_eps: float) -> float:
    new = {p: log_softmax(theta[p]) for p in {p for p, *_ in cells}}
    real = sum(n for n, *_ in cells.values())
    ratios = [(_exp(new[p][v] - old), n) for (p, v, old, _), (n, *_) in cells.items()]
    return sum(n for ratio, n in ratios if abs(ratio - 1) > clip_eps) / real


def clip_fraction(new_logps: Rows, old_logps: Rows, mask: Rows, clip_eps: float = 0.2) -> float:
    """Return the share of real tokens whose ratio is outside the clip range (B x T to [0, 1]).

    ``(1/N) Σ_{i,t: mask=1} 1[ |exp(new − old) − 1| > ε ]``. The sign of the advantage is ignored,
    so this counts more tokens than the clip holds. A ratio meant to be 1 ± ε exactly falls on
    the side where rounding puts it. Source: PPO, arXiv:1707.06347. Errors: see `grpo_loss`.
    """
    real = _real_tokens(mask, None, new_logps=new_logps, old_logps=old_logps)
    outside = sum(abs(_exp(new_logps[i][t] - old_logps[i][t]) - 1) > clip_eps for i, t in real)
    return outside / len(real)


def numeric_grad(f: Callable[[Table], float], theta: Table, h: float = 1e-4) -> Table:
    """Return the central-difference gradient of f at theta (theta's shape).

    ``∂f/∂θ_pv ≈ (f(θ_pv + h) − f(θ_pv − h)) / 2h``, error O(h²) where f is smooth. f sees theta
    itself, changed in place; every value is put back to the bit, also when f raises.
    """
    grad = [[0.0] * len(row) for row in theta]
    for row, slopes in zip(theta, grad, strict=True):
        for v, kept in enumerate(row):
            try:
                row[v] = kept + h
                up = f(theta)
                row[v] = kept - h
                slopes[v] = (up - f(theta)) / (2 * h)
            finally:
                row[v] = kept
    return grad


def _numeric_grpo(
    theta: Table, rows: Sequence[int], tokens: _Ids, /, *rest: Any, **kw: Any
) -> Table:
    def loss(th: Table) -> float:
        return grpo_loss(token_logps(th, rows, tokens), *rest, **kw)

    return numeric_grad(loss, theta, h=1e-5)  # near where truncation and rounding balance


_GRADIENTS = ("closed-form", "numeric")


def train(
    steps: int = 60,
    prompts: Sequence[int] = (0, 1, 2, 3),
    group_size: int = 8,
    max_len: int = 5,
    epochs: int = 2,
    lr: float = 2.0,
    seed: int = 0,
    *,
    gradient: Literal["closed-form", "numeric"] = "closed-form",
    **loss_kwargs: float,
) -> tuple[Table, list[dict[str, float]]]:
    """Train a table of zeros by GRPO (arXiv:2402.03300, algorithm 1); return (theta, history).

    Each step samples one batch and makes epochs updates ``θ ← θ − lr · ∂L/∂θ`` on it. theta has a
    row for every id up to the largest prompt; loss_kwargs are clip_eps and beta of `grpo_loss`.

    history[s] holds "reward", the mean rollout reward of step s, and "clip_frac", the largest
    clip fraction after any of its updates, at the clip_eps of the loss. It is measured after an
    update because before the first one every ratio is 1: epochs=1 would always show 0.

    gradient="numeric" uses `numeric_grad` for `grpo_grad`: slower, and equal up to its error
    unless a ratio comes within h of the clip edge. Across that kink a difference blends both
    slopes, and the two runs part from there. Raises ValueError for another name, or as `rollout`.
    """
    _require(gradient in _GRADIENTS, f"gradient is {gradient!r}; pick one of {_GRADIENTS}")
    rng = random.Random(seed)
    theta = [[0.0] * VOCAB for _ in range(max(prompts, default=-1) + 1)]
    ref = [row[:] for row in theta]
    clip_eps = loss_kwargs.get("clip_eps", 0.2)
    history: list[dict[str, float]] = []
    for _ in range(steps):
        rows, tokens, mask, rewards = rollout(theta, prompts, group_size, max_len, rng)
        stats = {"reward": sum(rewards) / len(rewards), "clip_frac": 0.0}
        history.append(stats)
        advantages = group_advantages(rewards, group_size)
        old_logps = token_logps(theta, rows, tokens)  # the policy that sampled, fixed from here
        batch = (rows, tokens, old_logps, token_logps(ref, rows, tokens), advantages, mask)
        cells = _tally(*batch)
        for _ in range(epochs):
            if gradient == "numeric":
                grad = _numeric_grpo(theta, *batch, **loss_kwargs)
            else:
                grad = _tally_grad(theta, cells, **loss_kwargs)
            _descend(theta, grad, lr)
            stats["clip_frac"] = max(stats["clip_frac"], _tally_clipped(theta, cells, clip_eps))
    return theta, history


def _descend(theta: Table, grad: Table, lr: float) -> None:
    for row, slopes in zip(theta, grad, strict=True):
        row[:] = [x - lr * slope for x, slope in zip(row, slopes, strict=True)]


def _softmax(logits: Sequence[float]) -> list[float]:
    return [math.exp(x) for x in log_softmax(logits)]


def _clip(ratio: float, clip_eps: float) -> float:
    return min(max(ratio, 1 - clip_eps), 1 + clip_eps)


def _exp(x: float) -> float:
    return math.exp(min(x, 700.0))  # math.exp raises OverflowError above 709.78


def _require(ok: bool, message: str) -> None:
    if not ok:
        raise ValueError(message)


def _check_prompts(prompts: Sequence[int], theta: Table) -> None:
    _require(len(prompts) > 0, "prompts is empty, expected at least one id; pass e.g. (0, 1)")
    for p in prompts:
        known = f"a row of theta, 0 to {len(theta) - 1}; add the row or correct the id"
        _require(0 <= p < len(theta), f"prompt id is {p}, expected {known}")


def _check_groups(rewards: Sequence[float], group_size: int) -> None:
    _require(group_size >= 1, f"group_size is {group_size}, expected 1 or more; raise it")
    _require(len(rewards) > 0, "rewards is empty, expected one per completion; pass a whole batch")
    for i, r in enumerate(rewards):
        _require(math.isfinite(r), f"rewards[{i}] is {r}, expected a finite number; correct it")
    ragged = f"expected a divisor of the {len(rewards)} rewards; drop the ragged last group"
    _require(len(rewards) % group_size == 0, f"group_size is {group_size}, {ragged}")


def _check_length(name: str, array: Sequence[Any], length: int) -> None:
    hint = "give all arrays the same rows and pad every row to the same length"
    _require(len(array) == length, f"{name} has length {len(array)}, expected {length}; {hint}")


def _real_tokens(mask: Rows, adv: Sequence[float] | None, **arrays: Rows) -> list[tuple[int, int]]:
    """Check that all arrays fit one B x T batch; return the (row, position) pairs mask keeps."""
    _require(len(mask) > 0, "mask has no rows, expected at least one completion; pass a batch")
    if adv is not None:
        _check_length("advantages", adv, len(mask))
    for name, array in {"mask": mask, **arrays}.items():
        _check_length(name, array, len(mask))
        for i, row in enumerate(array):
            _check_length(f"{name}[{i}]", row, len(mask[0]))
    for i, m in ((i, m) for i, row in enumerate(mask) for m in row):
        _require(m in (0, 1), f"mask[{i}] holds {m!r}, expected 1 (real) or 0 (padding); set it")
    real = [(i, t) for i, row in enumerate(mask) for t, m in enumerate(row) if m]
    _require(len(real) > 0, "mask is 0 everywhere, expected a real token; drop such a batch")
    return real
