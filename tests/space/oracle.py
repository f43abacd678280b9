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
    raise AssertionError(how.surrogate)


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


def row_corrections(how, old, sampler):
    """m of the real tokens of one row."""
    gaps = [o - s for o, s in zip(old, sampler, strict=True)]
    tokens = [math.exp(g) for g in gaps]
    whole = {
        "token": tokens,
        "sequence-sum": [math.exp(math.fsum(gaps))] * len(gaps),
        "sequence-mean": [math.exp(math.fsum(gaps) / len(gaps))] * len(gaps),
    }[how.level]
    carried = {"same": whole, "token": tokens, "none": [1.0] * len(gaps)}[how.carried]
    if how.action == "truncate":
        return [within(c, how.low, how.high) for c in carried]
    return [c if how.low <= w <= how.high else 0.0 for c, w in zip(carried, whole, strict=True)]


def denominator(name, length, tokens, rows, scope):
    """What the term of a token in a row of `length` tokens is divided by."""
    tokens = tokens if scope.tokens is None else scope.tokens
    rows = rows if scope.sequences is None else scope.sequences
    return {
        "token-mean": tokens,
        "sequence-mean": rows * length,
        "sequence-sum": rows,
        "sum": 1,
        "per-token": 1,
        "constant": scope.length,
        "constant-per-sequence": scope.length and scope.length * rows,
    }[name]


def loss(how, data, step_at=None):
    """The loss of a batch of nested lists; complex where `step_at` = (b, t) is given."""
    mask, scope = data["mask"], data["scope"]
    lengths = [sum(1 for m in row if m) for row in mask]
    rows = len(mask) if scope.count_empty else sum(1 for n in lengths if n)
    total, kl = 0.0, how.divergence
    for b, row in enumerate(mask):
        real_at = [t for t, m in enumerate(row) if m]
        if not real_at:
            continue

        def taken(name, b=b, at=real_at):
            return None if data.get(name) is None else [data[name][b][t] for t in at]

        fixed, ref, sampler, entropy = map(taken, ("new", "ref", "sampler", "entropy"))
        live = [
            x + 1j * STEP if step_at == (b, t) else x for x, t in zip(fixed, real_at, strict=True)
        ]
        old = taken("old") or fixed
        own = data["advantages"][b]
        adv = [own[t] for t in real_at] if isinstance(own, list) else [own] * len(real_at)
        rho = row_ratios(how, live, fixed, old, adv)
        m = [1.0] * len(real_at)
        if how.mismatch.action != "none" and sampler is not None:
            m = row_corrections(how.mismatch, old, sampler)
        target = ref if kl.target == "reference" else sampler
        names = how.aggregation, (how.aggregation if kl.aggregation == "same" else kl.aggregation)
        per, per_kl = (denominator(name, lengths[b], sum(lengths), rows, scope) for name in names)
        for i in range(len(real_at)):
            s = token_surrogate(how, rho[i], real(rho[i]), live[i], fixed[i], adv[i])
            total = total - m[i] * s / per
            if kl.place == "loss" and target is not None:
                d = token_divergence(kl, live[i], fixed[i], old[i], target[i])
                total = total + d * (m[i] if how.mismatch.on_divergence else 1.0) / per_kl
            if how.entropy and entropy is not None:
                total = total - how.entropy * entropy[i] / per
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


def advantages(how, rewards, groups, lengths=None):
    """Advantages of a flat list of rewards."""
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
    return clipped(whitened(how, values, lengths), how.clip)


def whitened(how, values, lengths):
    if how.whiten == "none":
        return values
    weight = [Fraction(1) for _ in values] if how.whiten == "sequence" else lengths
    total = Fraction(sum(weight))
    exact = [Fraction(v) for v in values]
    middle = sum(w * v for w, v in zip(weight, exact, strict=True)) / total
    squares = sum(w * (v - middle) ** 2 for w, v in zip(weight, exact, strict=True))
    var = squares / (max(total - 1, 1) if how.whiten_sample else total)
    divisor = math.sqrt(var + Fraction(how.whiten_eps)) or 1.0
    return [float(v - middle) / divisor for v in exact]


def clipped(values, bound):
    return values if bound is None else [within(v, -bound, bound) for v in values]
