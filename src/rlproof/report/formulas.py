r"""Every coordinate value as LaTeX: what reports print for a point of the space.

Macros are expanded by `form`: `\new`, `\old`, `\reference`, `\sampler` are probabilities of a
token under the four policies, `\sg` stops the gradient, `\clip` bounds. The indices are i for
rows (B), t for slots (T), L for real tokens of a row; [condition] is 1 where it holds, else 0.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

Forms = Mapping[str, str]
_MACROS = {
    "new": r"\pi_\theta",
    "old": r"\pi_{\text{old}}",
    "reference": r"\pi_{\text{ref}}",
    "sampler": r"\pi_{\text{sampler}}",
    "sg": r"\operatorname{sg}",
    "clip": r"\operatorname{clip}",
}
_MACRO = re.compile(r"\\(" + "|".join(_MACROS) + r")(?![a-zA-Z])")

_RATIOS: Forms = {
    "token": r"\rho_{i,t} = \frac{\new}{\old}",
    "detached": r"\rho_{i,t} = \frac{\new}{\sg(\new)} = 1",
    "log-prob-ratio": r"\rho_{i,t} = \frac{\log\new}{\log\old}",
    "log-difference": r"\rho_{i,t} = \log\new - \log\old",
    "inverted": r"\rho_{i,t} = \frac{\old}{\new}",
    "stopped": r"\rho_{i,t} = \frac{\sg(\new)}{\old}",
}
_LEVELS: Forms = {
    "token": r"\rho_{i,t} = \frac{\new}{\old}",
    "sequence-mean": r"\rho_{i,t} = \left(\prod_{u} \frac{\new}{\old}\right)^{1/L_i}",
    "sequence-mean-token": (
        r"\rho_{i,t} = \sg\left(\prod_{u} \frac{\new}{\old}\right)^{1/L_i} \frac{\new}{\sg(\new)}"
    ),
    "sequence-sum": r"\rho_{i,t} = \prod_{u} \frac{\new}{\old}",
    "geometric-of-clipped": (
        r"\rho_{i,t} = \left(\prod_{u} \clip\left(\frac{\new}{\old}, a, b\right)\right)^{1/L_i}"
    ),
}
_PUSHED = r"\operatorname{sign}(A)\, (\new - \old)"  # ε_A: ε_high for A > 0, else ε_low
_INSIDE_TV = rf"[\,{_PUSHED} \le \varepsilon_A\,]"
_INSIDE_KL = (
    rf"[\,\text{{KL}}_2(\old \Vert \new) \le \varepsilon_A \text{{ or }} {_PUSHED} \le 0\,]"
)
_SURROGATES: Forms = {
    "unclipped": r"s = \rho A",
    "min-clip": r"s = \min\left(\rho A,\ \clip(\rho, a, b)\, A\right)",
    "dual-clip": (
        r"s = \begin{cases} \max\left(\min(\rho A, \clip(\rho, a, b) A),\ c A\right) & A < 0 \\"
        r" \min(\rho A, \clip(\rho, a, b) A) & A \ge 0 \end{cases}"
    ),
    "log-prob": r"s = A \log\new",
    "cispo": r"s = \sg\left(\clip(\rho, a, b)\right) A \log\new",
    "two-sided": r"s = \min\left(\min(\rho, c)\, A,\ \clip(\rho, a, b)\, A\right)",
    "soft-gate": r"s = \frac{4}{\tau} \cdot \frac{A}{1 + e^{-\tau (\rho - 1)}}",
    "masked-ratio": r"s = \rho A\,[a \le \rho \le b]",
    "masked-probability": (
        r"s = \rho A\,[-\varepsilon_{\text{low}} \le \new - \old \le \varepsilon_{\text{high}}]"
    ),
    "trust-region-tv": r"s = \rho A\," + _INSIDE_TV,
    "trust-region-kl": r"s = \rho A\," + _INSIDE_KL,
    "tapered": (
        r"s = \begin{cases} A \log\new & A > 0 \\"
        r" \sg\left(\min(\rho, 1)\right) A \log\new & A \le 0 \end{cases}"
    ),
    "gamma-weight": r"s = \sg\left(\rho^k e^{\lambda (1 - \rho)}\right) A \log\new",
    "score-trust-region-tv": (r"s = \sg\left(\min(\rho, c)\right) A \log\new\," + _INSIDE_TV),
    "score-trust-region-kl": (r"s = \sg\left(\min(\rho, c)\right) A \log\new\," + _INSIDE_KL),
    "max-clip": r"s = \max\left(\rho A,\ \clip(\rho, a, b)\, A\right)",
    "min-of-ratios": r"s = \min\left(\rho,\ \clip(\rho, a, b)\right) A",
    "clip-only": r"s = \clip(\rho, a, b)\, A",
}
_K1 = r"\log\frac{\new}{\reference}"
_K2 = r"\frac{1}{2} \left(\log\frac{\new}{\reference}\right)^2"
_K3 = r"\frac{\reference}{\new} - \log\frac{\reference}{\new} - 1"
_DIVERGENCES: Forms = {
    "none": r"d = 0",
    "k1": rf"d = {_K1}",
    "k2": rf"d = {_K2}",
    "k3": rf"d = {_K3}",
    "absolute": rf"d = \left| {_K1} \right|",
    "k3-swapped": r"d = \frac{\new}{\reference} - \log\frac{\new}{\reference} - 1",
    "k3-stopped": rf"d = \sg\left({_K3}\right)",
    "k1-stopped": rf"d = \sg\left({_K1}\right)",
    "k2-stopped": rf"d = \sg\left({_K2}\right)",
    "absolute-stopped": rf"d = \sg\left(\left| {_K1} \right|\right)",
    "k1-in-reward": rf"d = \sg\left({_K1}\right) \log\new",
    "k2-in-reward": rf"d = \sg\left({_K2}\right) \log\new",
    "k2-in-reward-ratio": rf"d = \sg\left({_K2}\right) \frac{{\new}}{{\sg(\new)}}",
    "k3-in-reward": rf"d = \sg\left({_K3}\right) \log\new",
    "k3-in-reward-ratio": rf"d = \sg\left({_K3}\right) \frac{{\new}}{{\sg(\new)}}",
}
_GRADIENTS: Forms = {
    "naive": r"d = {}",
    "straight-through-k2": rf"d = \sg\left({{}}\right) + {_K2} - \sg\left({_K2}\right)",
    "ratio-weighted": r"d = \left({}\right) \frac{\new}{\old}",
    "score-weighted": r"d = \left({}\right) \frac{\new}{\sg(\new)}",
    "level-weighted": r"d = \left({}\right) \rho_{i,t}",
}
_SUFFIXES = {
    "-straight-through": "straight-through-k2",
    "-ratio-weighted": "ratio-weighted",
    "-score-weighted": "score-weighted",
    "-level-weighted": "level-weighted",
}
_AGGREGATIONS: Forms = {
    "same": r"w^d_{i,t} = w_{i,t}",
    "token-mean": r"w_{i,t} = \frac{1}{\sum_j L_j}",
    "sequence-mean": r"w_{i,t} = \frac{1}{B\, L_i}",
    "prompt-mean": r"w_{i,t} = \frac{1}{P \sum_{j \in p(i)} L_j}",
    "sequence-sum": r"w_{i,t} = \frac{1}{B}",
    "sum": r"w_{i,t} = 1",
    "length-and-width": r"w_{i,t} = \frac{1}{B\, T\, L_i}",
    "constant-per-sequence": r"w_{i,t} = \frac{1}{B\, C}",
    "constant": r"w_{i,t} = \frac{1}{C}",
    "per-token": r"w_{i,t} = 1 \text{ (not reduced)}",
    "all-slots": r"w_{i,t} = \frac{1}{B\, T}",
}
_BASELINES: Forms = {
    "group-mean": r"b_i = \frac{1}{G} \sum_j r_j",
    "leave-one-out": r"b_i = \frac{1}{G - 1} \sum_{j \ne i} r_j",
    "batch-mean": r"b_i = \frac{1}{N} \sum_j r_j",
    "none": r"b_i = 0",
    "length-weighted-mean": r"b_i = \frac{\sum_j L_j r_j}{\sum_j L_j}",
}
_SCALES: Forms = {
    "none": r"\sigma_i = 1",
    "population-std": r"\sigma_i = \sqrt{\frac{1}{G} \sum_j (r_j - \bar{r})^2}",
    "sample-std": r"\sigma_i = \sqrt{\frac{1}{G - 1} \sum_j (r_j - \bar{r})^2}",
    "batch-population-std": r"\sigma_i = \sqrt{\frac{1}{N} \sum_j (r_j - \bar{r})^2}",
    "batch-sample-std": r"\sigma_i = \sqrt{\frac{1}{N - 1} \sum_j (r_j - \bar{r})^2}",
    "leave-one-out-std": (
        r"\sigma_i = \sqrt{\frac{1}{G - 2} \sum_{j \ne i} (r_j - \bar{r}_{-i})^2}"
    ),
    "others-std": r"\sigma_i = \sqrt{\frac{1}{G - 1} \sum_{j \ne i} (r_j - \bar{r}_{-i})^2}",
    "group-mean": r"\sigma_i = \bar{r}",
    "nonzero-share": r"\sigma_i = \frac{1}{N} \sum_j [r_j \ne b_j]",
}
_EPS_PLACES: Forms = {
    "std + eps": r"\sigma_i + \varepsilon",
    "sqrt(var + eps)": r"\sqrt{\sigma_i^2 + \varepsilon}",
    "sqrt(max(var, eps))": r"\sqrt{\max(\sigma_i^2, \varepsilon)}",
}
_WHITENINGS: Forms = {
    "none": r"A_i \text{ as it is}",
    "sequence": r"A_i \leftarrow \frac{A_i - \bar{A}}{\sqrt{\text{var}(A) + \varepsilon}}",
    "token": r"A_i \leftarrow \frac{A_i - \bar{A}_L}{\sqrt{\text{var}_L(A) + \varepsilon}},"
             r"\quad \bar{A}_L = \frac{\sum_j L_j A_j}{\sum_j L_j}",
}  # fmt: skip
_CONVENTIONS: Forms = {
    "delta": r"a = 1 - \varepsilon_{\text{low}},\quad b = 1 + \varepsilon_{\text{high}}",
    "absolute": r"a = \varepsilon_{\text{low}},\quad b = \varepsilon_{\text{high}}",
    "log": r"a = e^{-\varepsilon_{\text{low}}},\quad b = e^{\varepsilon_{\text{high}}}",
}
_MISMATCH: Mapping[str, Forms] = {
    "mismatch.action": {
        "none": r"\kappa_{i,t} = 1",
        "truncate": r"\kappa_{i,t} = \clip(c_{i,t}, \text{low}, \text{high})",
        "mask": r"\kappa_{i,t} = c_{i,t}\,[\text{low} \le q_{i,t} \le \text{high}]",
    },
    "mismatch.level": {
        "token": r"q_{i,t} = \frac{\old}{\sampler}",
        "sequence-sum": r"q_{i,t} = \prod_{u} \frac{\old}{\sampler}",
        "sequence-mean": r"q_{i,t} = \left(\prod_{u} \frac{\old}{\sampler}\right)^{1/L_i}",
        "sequence-max": r"q_{i,t} = \max_{u} \frac{\old}{\sampler}",
    },
    "mismatch.carried": {
        "same": r"c_{i,t} = q_{i,t}",
        "token": r"c_{i,t} = \frac{\old}{\sampler}",
        "none": r"c_{i,t} = 1",
    },
    "mismatch.statistic": {
        "ratio": r"q = \frac{\pi}{\sampler}",
        "k2": r"q = \frac{1}{2} \left(\log\frac{\pi}{\sampler}\right)^2",
        "k3": r"q = \frac{\pi}{\sampler} - 1 - \log\frac{\pi}{\sampler}",
        "absolute": r"q = \left| \log\frac{\pi}{\sampler} \right|",
        "total-variation": r"q = \left| \pi - \sampler \right|",
        "binary-kl": r"q = \text{KL}_2(\sampler \Vert \pi)",
    },
    "mismatch.numerator": {"old": r"\pi = \old", "new": r"\pi = \sg(\new)"},
}
FORMS: Mapping[str, Forms] = {
    "ratio": _RATIOS,
    "level": _LEVELS,
    "surrogate": _SURROGATES,
    "divergence": _DIVERGENCES,
    "aggregation": _AGGREGATIONS,
    "baseline": _BASELINES,
    "scale": _SCALES,
    "eps_place": _EPS_PLACES,
    "whiten": _WHITENINGS,
    "clip_convention": _CONVENTIONS,
    "zero_variance": {
        "divide": r"A_i = \frac{0}{\varepsilon} = 0 \text{ where } \sigma_i = 0",
        "unscaled": r"\sigma_i := 1 \text{ where } \sigma_i = 0",
    },
    "singleton": {
        "zero": r"A_i = 0 \text{ where } G = 1",
        "raw": r"A_i = r_i \text{ where } G = 1",
        "error": r"G \ge 2",
    },
    "sign": {"inverted": r"A_i \leftarrow -A_i", "negative": r"\log\new \leftarrow -\log\new"},
    "padding": {
        "masked": r"m_{i,t} \in \{0, 1\}",
        "counted": r"m_{i,t} = 1 \text{ on padding too}",
    },
    "ratio_to": {"reference": r"\old \leftarrow \reference"},
    "place": {
        "none": r"\beta = 0",
        "loss": r"L \leftarrow L + \beta \sum_{i,t} w_{i,t}\, d_{i,t}",
        "reward": r"r_i \leftarrow r_i - \beta \sum_{t} d_{i,t}",
        "token-reward": r"r_{i,t} \leftarrow r_{i,t} - \beta\, d_{i,t}",
        "advantage": r"A_{i,t} = A_i + \beta \left(\bar{d} - d_{i,t}\right)",
    },
    "target": {
        "reference": r"d = d(\new, \reference)",
        "sampler": r"d = d(\new, \sampler)",
        "old": r"d = d(\new, \old)",
    },
    "combine": {
        "sum": r"r_i = \sum_k \omega_k\, r_{i,k}",
        "decoupled": r"A_i = \sum_k \omega_k\, A_{i,k}",
    },
    "clip_place": {
        "last": r"A_i \leftarrow \clip(A_i, -c, c) \text{, last}",
        "before whitening": r"A_i \leftarrow \clip(A_i, -c, c) \text{, before whitening}",
    },
    "rule": {
        "none": r"\text{every row is kept}",
        "zero-variance": r"\sigma_i > \text{low}",
        "mean-range": r"\text{low} < \bar{r} < \text{high}",
        "zero-advantage": r"A_{i,t} \ne 0",
    },
    "truncated": {
        "counted": r"m_{i,t} = 1 \text{ in truncated rows too}",
        "dropped": r"m_{i,t} = 0 \text{ in truncated rows}",
    },
    "end": {"counted": r"m_{i,L_i} = 1", "dropped": r"m_{i,L_i} = 0"},
    "reduction": {
        "sum": r"\sum_{t} d_{i,t}",
        "mean": r"\frac{1}{L_i} \sum_{t} d_{i,t}",
        "token": r"d_{i,t}",
    },
    "log_probs": {
        "log-softmax": r"\log\new(v) = z_v - \log \sum_{u} e^{z_u}",
        "unnormalised": r"\log\new(v) = z_v",
    },
    **_MISMATCH,
}
"""LaTeX by axis of a point and value; use `form`, which expands macros and combined names."""

AXES_OF_OBJECTIVE = {
    "ratio": "level",
    "divergence.estimator": "divergence",
    "divergence.gradient": "divergence_gradient",
    "divergence.aggregation": "aggregation",
    "divergence.place": "place",
    "divergence.target": "target",
    "clip.convention": "clip_convention",
    "entropy.aggregation": "aggregation",
    "advantage.whiten_eps_place": "eps_place",
    "filter.rule": "rule",
    "masks.truncated": "truncated",
    "masks.end": "end",
    **{name.replace("mismatch", "rejection"): name for name in _MISMATCH},
    **{
        f"advantage.{name}": name
        for name in (
            "baseline", "scale", "eps_place", "singleton", "zero_variance", "whiten", "combine",
            "clip_place",
        )
    },
}  # fmt: skip
"""Where the forms of an `Objective`'s coordinate are, if not under its own name."""


def form(axis: str, value: str, *, old: str = r"\old", reference: str = r"\reference") -> str:
    r"""The LaTeX of one coordinate value.

    Args:
        axis: an axis of a point, or a dotted coordinate of an `Objective`.
        value: one of its values; divergences may be `<estimator>-<gradient>`.
        old: what the ratio compares with, `\old` or `\reference`.
        reference: what a divergence compares with, `\reference` or `\old`.

    Raises:
        KeyError: this axis has no such value.
    """
    if axis == "divergence_gradient":
        return _expanded(_GRADIENTS[value].replace("{}", "d"))
    latex = FORMS[axis].get(value)
    if latex is None:
        if axis != "divergence":
            raise KeyError(f"{axis} = {value!r} has no formula")
        latex = _combined(value)
    return _expanded(latex.replace(r"\old", old).replace(r"\reference", reference))


def has_form(axis: str, value: object) -> bool:
    """Whether `form` knows this value."""
    try:
        form(axis, str(value))
    except KeyError:
        return False
    return True


def _combined(name: str) -> str:
    """A divergence with a gradient mode of its own."""
    for suffix, gradient in _SUFFIXES.items():
        estimator = name.removesuffix(suffix)
        if estimator != name and estimator in _DIVERGENCES:
            body = _DIVERGENCES[estimator].removeprefix("d = ")
            return _GRADIENTS[gradient].replace("{}", body)
    raise KeyError(f"divergence = {name!r} has no formula")


def _expanded(latex: str) -> str:
    return _MACRO.sub(lambda match: _MACROS[match[1]], latex)


def number(value: float) -> str:
    """A number as LaTeX."""
    if value != value:
        return r"\text{NaN}"
    if abs(value) == float("inf"):
        return r"\infty" if value > 0 else r"-\infty"
    mantissa, _, exponent = f"{value:.6g}".partition("e")
    return rf"{mantissa} \cdot 10^{{{int(exponent)}}}" if exponent else mantissa
