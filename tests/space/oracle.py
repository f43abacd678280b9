"""The space once more, as plain loops over tokens: what the vectorised code is held against.

Written from the formulas of the papers, a token at a time, with the standard library alone. Slopes
come from a complex step: f(x + ih) = f(x) + ih·f′(x) + O(h²) with h = 1e-30, so Im f / h is f′ to
the last digits, without any derivation by hand that could repeat a mistake. Comparisons look at
the real part. What is under a stop-gradient comes from `fixed`, the log-probs without the step.

Advantages are computed in exact fractions, and rounded once for each square root.
"""

from __future__ import annotations

import cmath
import math
from dataclasses import replace
from fractions import Fraction

STEP = 1e-30


def real(z):
    return z.real if isinstance(z, complex) else z


def smaller(a, b):
    return a if real(a) <= real(b) else b


def larger(a, b):
    return a if real(a) >= real(b) else b


def within(z, low, high):
    """z, or the bound it is beyond."""
    return low if real(z) < low else high if real(z) > high else z


def bounds(clip):
    low = -math.inf if clip.low is None else clip.low
    high = math.inf if clip.high is None else clip.high
    if clip.convention == "delta":  # PPO's ε
        return 1 - (math.inf if clip.low is None else low), 1 + high
    if clip.convention == "log":  # GMPO's ε
        return (0.0 if clip.low is None else math.exp(-low)), math.exp(high)
    return low, high


def row_ratios(how, live, fixed, old, adv):
    """ρ of the real tokens of one row."""
    gap = [x - o for x, o in zip(live, old, strict=True)]
    limit = math.inf if how.ratio_clamp is None else how.ratio_clamp
    low, high = bounds(how.clip)
    count = len(gap)
    match how.ratio:
        case "token":  # 1707.06347 eq. 6
            return [cmath.exp(within(g, -limit, limit)) for g in gap]
        case "sequence-mean":  # 2507.18071: (π(y)/π_old(y))^(1/|y|)
            return [cmath.exp(within(sum(gap) / count, -limit, limit))] * count
        case "sequence-sum":  # π(y)/π_old(y)
            return [cmath.exp(within(sum(gap), -limit, limit))] * count
        case "sequence-mean-token":  # 2507.18071, token form: sg[s]·π(y_t)/sg[π(y_t)]
            mean = sum(f - o for f, o in zip(fixed, old, strict=True)) / count
            if abs(mean) > limit:
                return [cmath.exp(within(mean, -limit, limit))] * count
            return [cmath.exp(mean + x - f) for x, f in zip(live, fixed, strict=True)]
        case "geometric-of-clipped":  # 2507.20673: the side that sgn(A) leaves
            top = math.log(high) if high < math.inf else math.inf
            bottom = math.log(low) if low > 0 else -math.inf
            kept = [
                smaller(g, top) if a > 0 else larger(g, bottom)
                for g, a in zip(gap, adv, strict=True)
            ]
            return [cmath.exp(within(sum(kept) / count, -limit, limit))] * count
    raise AssertionError(how.ratio)


def token_surrogate(how, rho, rho_fixed, live, fixed, a):
    """s(ρ, A), to be maximised."""
    clip = how.clip
    low, high = bounds(clip)
    clipped = within(rho, low, high)
    match how.surrogate:
        case "unclipped":
            return rho * a
        case "min-clip":  # 1707.06347 eq. 7
            return smaller(rho * a, clipped * a)
        case "dual-clip":  # 1912.09729
            plain = smaller(rho * a, clipped * a)
            return larger(plain, clip.cap * a) if a < 0 else plain
        case "two-sided":  # 2505.07291
            return smaller(smaller(rho, clip.cap) * a, clipped * a)
        case "log-prob":  # Williams 1992
            return live * a
        case "cispo":  # 2506.13585
            return within(rho_fixed, low, high) * a * live
        case "soft-gate":  # 2511.20347
            tau = clip.positive_temperature if a > 0 else clip.negative_temperature
            return 4 / tau * a / (1 + cmath.exp(-tau * (rho - 1)))
        case "masked-ratio":
            return rho * a if low <= real(rho) <= high else 0.0
        case "masked-probability":
            moved = math.exp(fixed) - math.exp(fixed) / rho_fixed
            low = -math.inf if clip.low is None else -clip.low
            high = math.inf if clip.high is None else clip.high
            return rho * a if low <= moved <= high else 0.0
        case "trust-region-tv" | "trust-region-kl":
            return rho * a if trusted(how, rho_fixed, fixed, a) else 0.0
        case "score-trust-region-tv" | "score-trust-region-kl":
            inside = trusted(how, rho_fixed, fixed, a)
            return min(rho_fixed, clip.cap) * a * live if inside else 0.0
        case "tapered":  # 2503.14286
            return (1 if a > 0 else min(rho_fixed, 1)) * a * live
        case "gamma-weight":  # ρ^k·e^{λ(1−ρ)}
            k, rate = clip.positive_gamma if a >= 0 else clip.negative_gamma
            return rho_fixed**k * math.exp(rate - rate * rho_fixed) * a * live
    raise AssertionError(how.surrogate)


def coins(p, q):
    """KL of a coin of probability p to one of q, in the form that keeps 1 − p from 0."""
    return p * math.log(p / q) + (1 - p) * math.log((1 - p + 1e-8) / (1 - q + 1e-8))


def trusted(how, rho, fixed, a):
    """2602.04879 eq. 13 and 14: only a move to the side that A pushes to can be too far."""
    new = math.exp(fixed)
    old = new / rho
    moved = new - old if a > 0 else old - new
    bound = how.clip.high if a > 0 else how.clip.low
    if bound is None or moved <= 0:
        return True
    return (moved if how.surrogate.endswith("tv") else coins(old, new)) <= bound


def token_divergence(kl, live, fixed, old, target):
    """β·d of one token."""
    gap = live - target
    if kl.clamp_in is not None:
        gap = within(gap, -kl.clamp_in, kl.clamp_in)
    match kl.estimator:  # Schulman's note, with r = π_target/π: −log r, (log r)²/2, r − 1 − log r
        case "k1":
            d = gap
        case "k2":
            d = gap * gap / 2
        case "k3":
            d = cmath.exp(-gap) - 1 + gap
        case "absolute":
            d = gap if real(gap) >= 0 else -gap
    if kl.clamp_out is not None:
        d = within(d, -kl.clamp_out, kl.clamp_out)
    match kl.gradient:
        case "straight-through-k2":
            d = real(d) + (live - target) ** 2 / 2 - (fixed - target) ** 2 / 2
        case "ratio-weighted":
            d = d * cmath.exp(live - old)
        case "score-weighted":
            d = d * cmath.exp(live - fixed)
    return kl.coefficient * d


def row_statistic(how, policy, sampler):
    """What the bounds are compared with, for the real tokens of one row."""
    gaps = [o - s for o, s in zip(policy, sampler, strict=True)]
    tokens = {
        "ratio": lambda: gaps,
        "k2": lambda: [g * g / 2 for g in gaps],
        "k3": lambda: [math.exp(g) - 1 - g for g in gaps],
        "absolute": lambda: [abs(g) for g in gaps],
        "total-variation": lambda: [
            abs(math.exp(o) - math.exp(s)) for o, s in zip(policy, sampler, strict=True)
        ],
        "binary-kl": lambda: [
            coins(math.exp(s), math.exp(o)) for o, s in zip(policy, sampler, strict=True)
        ],
    }[how.statistic]()
    whole = {
        "token": lambda: tokens,
        "sequence-sum": lambda: [math.fsum(tokens)] * len(tokens),
        "sequence-mean": lambda: [math.fsum(tokens) / len(tokens)] * len(tokens),
        "sequence-max": lambda: [max(tokens)] * len(tokens),
    }[how.level]()
    return [math.exp(w) for w in whole] if how.statistic == "ratio" else whole


def corrections(how, data, adv):
    """(weight, kept) of every slot; None on padding and in the place of a missing sampler."""
    made = []
    for b, row in enumerate(data["mask"]):
        at = [t for t, m in enumerate(row) if m]
        cells = [(1.0, True)] * len(row)
        made.append(cells)
        if how.action == "none" or not at:
            continue
        start = data["old"] or data["new"]
        policy = [(start if how.numerator == "old" else data["new"])[b][t] for t in at]
        sampler = [(data["sampler"] or start)[b][t] for t in at]
        ratio = replace(how, statistic="ratio")
        carried = {
            "same": row_statistic(ratio, policy, sampler),
            "token": row_statistic(replace(ratio, level="token"), policy, sampler),
            "none": [1.0] * len(at),
        }[how.carried]
        for t, w, c in zip(at, row_statistic(how, policy, sampler), carried, strict=True):
            if how.action == "truncate":
                cells[t] = within(c, how.low, how.high), True
                continue
            keep = how.low <= w <= how.high or (how.negative_only and adv[b][t] >= 0)
            cells[t] = (c if keep else 0.0), keep
    if how.normalised and how.action != "none":
        given = data["scope"].mean_weight
        mean = mean_weight(how, data["mask"], made) if given is None else given
        made = [[(w / mean, k) for w, k in cells] for cells in made]
    return made


def mean_weight(how, mask, made):
    rows = [
        [w for (w, _), m in zip(cells, row, strict=True) if m]
        for cells, row in zip(made, mask, strict=True)
    ]
    rows = [row for row in rows if row]
    if how.level == "token":
        rows = [[w] for row in rows for w in row]
    mean = math.fsum(math.fsum(row) / len(row) for row in rows) / max(len(rows), 1)
    return mean if mean > 1e-8 else 1.0


def denominator(name, b, mask, groups, scope):
    """What the term of a token in row b is divided by."""
    lengths = [sum(1 for m in row if m) for row in mask]
    prompt = groups if isinstance(groups, list) else [0] * len(mask)
    of_prompt = {p: sum(n for n, q in zip(lengths, prompt, strict=True) if q == p) for p in prompt}
    rows = len(mask) if scope.count_empty else sum(1 for n in lengths if n)
    prompts = len(of_prompt) if scope.count_empty else sum(1 for n in of_prompt.values() if n)
    tokens = sum(lengths) if scope.tokens is None else scope.tokens
    rows = rows if scope.sequences is None else scope.sequences
    prompts = prompts if scope.prompts is None else scope.prompts
    return {
        "token-mean": tokens,
        "sequence-mean": rows * lengths[b],
        "prompt-mean": prompts * of_prompt[prompt[b]],
        "sequence-sum": rows,
        "sum": 1,
        "per-token": 1,
        "constant": scope.length,
        "constant-per-sequence": scope.length and scope.length * rows,
    }[name]


def quantile(values, level):
    """Between two neighbours, linearly."""
    ranked = sorted(values)
    place = (len(ranked) - 1) * level
    low = math.floor(place)
    after = min(low + 1, len(ranked) - 1)
    return ranked[low] + (place - low) * (ranked[after] - ranked[low])


def counting(how, data, adv, made):
    """(mask for the denominators, slots trained on), after filters and corrections."""
    mask = [[bool(m) for m in row] for row in data["mask"]]
    live = [[True] * len(row) for row in mask]
    for b, row in enumerate(mask):
        for t in range(len(row)):
            out = how.filter.rule in ("zero-variance", "mean-range") and not data["kept"][b]
            out = out or (how.filter.rule == "zero-advantage" and row[t] and adv[b][t] == 0)
            if out and how.filter.counted:
                live[b][t] = False
            dropped = any(
                not one.counted and not cells[b][t][1]
                for one, cells in zip((how.mismatch, how.rejection), made, strict=True)
            )
            if dropped or (out and not how.filter.counted):
                mask[b][t] = False
    return mask, live


def loss(how, data, step_at=None):
    """The loss of a batch of nested lists; complex where `step_at` = (b, t) is given."""
    scope, kl, groups = data["scope"], how.divergence, data.get("groups")
    given = data["advantages"]
    adv = [
        a if isinstance(a, list) else [a] * len(r) for a, r in zip(given, data["mask"], strict=True)
    ]
    made = [corrections(one, data, adv) for one in (how.mismatch, how.rejection)]
    mask, live = counting(how, data, adv, made)
    total = 0.0
    if how.entropy.top_share < 1:
        limit = scope.entropy_threshold
        seen = [
            h for hs, ms in zip(data["entropy"], mask, strict=True)
            for h, m in zip(hs, ms, strict=True) if m
        ]  # fmt: skip
        limit = quantile(seen, 1 - how.entropy.top_share) if limit is None and seen else limit
    for b, row in enumerate(mask):
        real_at = [t for t, m in enumerate(row) if m]
        if not real_at:
            continue

        def taken(name, b=b, at=real_at):
            return None if data.get(name) is None else [data[name][b][t] for t in at]

        fixed, ref, sampler, entropy = map(taken, ("new", "ref", "sampler", "entropy"))
        nudged = [
            x + 1j * STEP if step_at == (b, t) else x for x, t in zip(fixed, real_at, strict=True)
        ]
        old = taken("old") or fixed
        own = [adv[b][t] for t in real_at]
        rho = row_ratios(how, nudged, fixed, old, own)
        target = {"reference": ref, "sampler": sampler, "old": old}[kl.target]
        names = [how.aggregation] + [
            how.aggregation if part.aggregation == "same" else part.aggregation
            for part in (kl, how.entropy)
        ]
        per, per_kl, per_entropy = (denominator(n, b, mask, groups, scope) for n in names)
        for i, t in enumerate(real_at):
            if not live[b][t]:
                continue
            first, second = (cells[b][t][0] for cells in made)
            chosen = how.entropy.top_share >= 1 or entropy[i] >= limit
            if chosen:
                s = token_surrogate(how, rho[i], real(rho[i]), nudged[i], fixed[i], own[i])
                total = total - first * second * s / per
            if kl.place == "loss":
                d = token_divergence(kl, nudged[i], fixed[i], old[i], target[i])
                if kl.gradient == "level-weighted":
                    d = d * rho[i]
                d = d * (first if how.mismatch.on_divergence else 1.0)
                d = d * (second if how.rejection.on_divergence else 1.0)
                total = total + d / per_kl
            if how.entropy.coefficient and chosen:
                total = total - how.entropy.coefficient * entropy[i] / per_entropy
    return total if step_at is not None else real(total)


def gradient(how, data):
    """∂L/∂log π_new, one complex step for each slot."""
    return [
        [complex(loss(how, data, (b, t))).imag / STEP for t in range(len(row))]
        for b, row in enumerate(data["mask"])
    ]


def mean(values):
    return sum(values, Fraction(0)) / len(values)


def variance(values, ddof):
    middle = mean(values)
    return sum((v - middle) ** 2 for v in values) / max(len(values) - ddof, 1)


def stabilised(var, how):
    """The divisor, with eps where it stands; never 0."""
    match how.eps_place:
        case "std + eps":
            divisor = math.sqrt(var) + how.eps
        case "sqrt(var + eps)":
            divisor = math.sqrt(var + Fraction(how.eps))
        case "sqrt(max(var, eps))":
            divisor = math.sqrt(max(var, Fraction(how.eps)))
    return divisor or 1.0


def advantages(how, rewards, groups, lengths=None, penalty=None):
    """Advantages of a flat list of rewards, or of lists of rewards."""
    return finished(how, unfinished(how, rewards, groups, lengths, penalty), lengths)


def unfinished(how, rewards, groups, lengths=None, penalty=None):
    """Before whitening and clip."""
    rows = [x if isinstance(x, list) else [x] for x in rewards]
    weights = how.reward_weights or [1] * len(rows[0])
    parts = list(zip(*rows, strict=True))
    if how.combine == "sum":
        parts = [
            [
                sum(Fraction(w) * Fraction(x) for w, x in zip(weights, row, strict=True))
                for row in rows
            ]
        ]
        weights = [1]
    if how.reward_clip is not None:
        parts = [[within(x, *how.reward_clip) for x in part] for part in parts]
    if penalty is not None:
        parts = [
            [Fraction(x) - Fraction(q) for x, q in zip(part, penalty, strict=True)]
            for part in parts
        ]
    made = [of_one(how, part, groups, lengths) for part in parts]
    return [
        sum(w * v for w, v in zip(weights, row, strict=True)) for row in zip(*made, strict=True)
    ]


def finished(how, values, lengths):
    """Whitening and clip, of a flat list."""
    if how.clip_place == "before whitening":
        return whitened(how, clipped(values, how.clip), lengths)
    return clipped(whitened(how, values, lengths), how.clip)


def of_one(how, rewards, groups, lengths):
    """Centred and scaled."""
    r = [Fraction(x) for x in rewards]
    ids = [i // groups for i in range(len(r))] if isinstance(groups, int) else list(groups)
    members = [[j for j in range(len(r)) if ids[j] == ids[i]] for i in range(len(r))]
    of_group = how.baseline in ("group-mean", "leave-one-out", "length-weighted-mean")
    of_group = of_group or how.scale in (
        "population-std", "sample-std", "leave-one-out-std", "group-mean"
    )  # fmt: skip

    centred = []
    for i, mine in enumerate(members):
        others = [r[j] for j in mine if j != i]
        match how.baseline:
            case "none":
                base = Fraction(0)
            case "group-mean":
                base = mean([r[j] for j in mine])
            case "leave-one-out":
                base = mean(others) if others else r[i]
            case "batch-mean":
                base = mean(r)
            case "length-weighted-mean":
                weight = sum(lengths[j] for j in mine)
                base = sum(lengths[j] * r[j] for j in mine) / Fraction(weight or 1)
        centred.append(r[i] - base)

    rounding = Fraction(1, 10**14) * max((abs(x) for x in r), default=0)
    nonzero = sum(1 for c in centred if abs(c) > rounding)
    values = []
    for i, mine in enumerate(members):
        group = [r[j] for j in mine]
        others = [r[j] for j in mine if j != i]
        var = {
            "population-std": lambda g=group: variance(g, 0),
            "sample-std": lambda g=group: variance(g, 1),
            "leave-one-out-std": lambda o=others: variance(o, 1) if o else Fraction(0),
            "batch-population-std": lambda: variance(r, 0),
            "batch-sample-std": lambda: variance(r, 1),
        }.get(how.scale)
        if var is not None:
            flat = how.zero_variance == "unscaled" and var() == 0
            value = float(centred[i]) / (1.0 if flat else stabilised(var(), how))
        elif how.scale == "group-mean":
            value = float(centred[i]) / (float(mean(group) + Fraction(how.eps)) or 1.0)
        elif how.scale == "nonzero-share":
            value = float(centred[i]) * len(r) / max(nonzero, 1)
        else:
            value = float(centred[i])
        if of_group and len(mine) == 1:
            value = float(r[i]) if how.singleton == "raw" else 0.0
        values.append(value)
    return values


def whitened(how, values, lengths):
    if how.whiten == "none":
        return values
    weight = [Fraction(1) for _ in values] if how.whiten == "sequence" else lengths
    total = Fraction(sum(weight))
    exact = [Fraction(v) for v in values]
    middle = sum(w * v for w, v in zip(weight, exact, strict=True)) / total
    squares = sum(w * (v - middle) ** 2 for w, v in zip(weight, exact, strict=True))
    var = squares / (max(total - 1, 1) if how.whiten_sample else total)
    divisor = stabilised(var, replace(how, eps=how.whiten_eps, eps_place=how.whiten_eps_place))
    return [float(v - middle) / divisor for v in exact]


def clipped(values, bound):
    return values if bound is None else [within(v, -bound, bound) for v in values]
