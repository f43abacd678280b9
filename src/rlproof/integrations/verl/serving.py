"""What verl can serve of an objective, and which of its options must agree with it.

A policy loss of verl is given log-probs, old log-probs, advantages, a mask and weights of the
sampler's correction, of one micro-batch. The KL to the reference and the entropy are added outside
of it, by verl, from options; so those options must be the objective's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rlproof.space.filters import OF_GROUPS
from rlproof.space.masks import Masks
from rlproof.space.mismatch import Mismatch
from rlproof.space.objective import Objective

MODES = {
    "token-mean": "token-mean",
    "sequence-mean": "seq-mean-token-mean",
    "sequence-sum": "seq-mean-token-sum",
    "constant-per-sequence": "seq-mean-token-sum-norm",
    "sum": "token-sum",
}
"""verl's `loss_agg_mode` for an aggregation, with counts of the whole mini-batch."""
_KL_TYPES = {
    ("k1", "naive"): ("kl", "k1"),
    ("absolute", "naive"): ("abs",),
    ("k2", "naive"): ("mse", "k2", "mse+", "k2+"),
    ("k3", "naive"): ("low_var_kl", "k3"),
    ("k1", "straight-through-k2"): ("kl+", "k1+"),
    ("absolute", "straight-through-k2"): ("abs+",),
    ("k2", "straight-through-k2"): ("mse", "k2", "mse+", "k2+"),
    ("k3", "straight-through-k2"): ("low_var_kl+", "k3+"),
}
"""verl's `kl_loss_type` and `kl_penalty` for an estimator and how it is differentiated."""
_IS = {"token": "token", "sequence-sum": "sequence"}
_BOUNDS = {(None, None), (20.0, 10.0)}
"""verl bounds k3: the log-ratio by 20, the estimate by 10 nats."""


def pulled(how: Objective, place: str = "loss", target: str = "reference") -> bool:
    """Whether a divergence stands in that place."""
    kl = how.divergence
    return kl.coefficient != 0 and (kl.place, kl.target) == (place, target)


def own_divergence(how: Objective) -> bool:
    """Whether the policy loss itself has the divergence: one from the old policy."""
    return pulled(how, "loss", "old")


def aggregation_of_divergence(how: Objective) -> str:
    """Slot weights of the divergence."""
    named = how.divergence.aggregation
    return how.aggregation if named == "same" else named


def needs_whole(how: Objective) -> bool:
    """Whether a denominator is known only where the micro-batch is the whole mini-batch."""
    one = how.rejection
    moving = one.action != "none" and (one.normalised or not one.counted)
    return moving or (how.filter.rule != "none" and not how.filter.counted)


def loss_refusal(how: Objective) -> str | None:
    """Why verl's policy losses can't serve the objective, whatever the options."""
    kl, grouped = how.divergence, "prompt-mean"
    in_loss = kl.place == "loss" and kl.coefficient != 0
    reference = pulled(how)
    cases = [
        (grouped in (how.aggregation, aggregation_of_divergence(how)), "aggregation 'prompt-mean' "
         "needs to know the prompt of each row, and verl hands its losses no ids"),
        (how.filter.rule in OF_GROUPS, f"filter.rule {how.filter.rule!r} needs rewards, which "
         "verl's losses don't see; see algorithm.filter_groups"),
        (how.entropy.top_share < 1, "entropy.top_share needs entropies, which verl's losses "
         "don't see"),
        (how.temperature != 1, f"temperature is {how.temperature}: verl scores at "
         "actor_rollout_ref.rollout.temperature and tells its losses nothing; expected 1 here"),
        (how.masks != Masks(), "masks other than the default: verl's mask doesn't say which rows "
         "were cut off"),
        (in_loss and kl.target == "sampler", "divergence.target is 'sampler': verl hands its "
         "losses no log-probs of the sampler"),
        (reference and (kl.estimator, kl.gradient) not in _KL_TYPES,
         f"divergence.gradient is {kl.gradient!r}, which no kl_loss_type of verl computes"),
        (reference and (kl.clamp_in, kl.clamp_out) not in _BOUNDS, "divergence.clamp_in and "
         "clamp_out: verl's are 20 and 10"),
        (reference and aggregation_of_divergence(how) not in MODES, "no loss_agg_mode is "
         f"{aggregation_of_divergence(how)!r}, and verl adds the divergence"),
        (how.entropy.coefficient != 0 and _entropy_aggregation(how) not in MODES,
         f"no loss_agg_mode is {_entropy_aggregation(how)!r}, and verl adds the entropy"),
        (not _correction_served(how.mismatch), "the correction of the sampler needs its "
         "log-probs, which verl hands no loss, and is none that rollout_correction.rollout_is "
         "computes"),
        (how.rejection.action != "none" and how.rejection.numerator == "old", "the rejection "
         "compares with the sampler, whose log-probs verl hands no loss"),
    ]  # fmt: skip
    return next((text for wrong, text in cases if wrong), None)


def _correction_served(one: Mismatch) -> bool:
    """Whether the weights are those of verl's `rollout_is`, truncated or IcePop's."""
    plain = Mismatch(one.action, one.level, one.low, one.high)
    low = one.action == "mask" or one.low == 0
    return one.action == "none" or (one == plain and one.level in _IS and low)


def correction_options(one: Mismatch) -> str:
    """The options of verl that compute a correction."""
    bound = f"{one.high:g}" if one.action == "truncate" else f"'{one.low:g}_{one.high:g}'"
    return (
        f"algorithm.rollout_correction.rollout_is={_IS[one.level]} and rollout_is_threshold={bound}"
    )


def _entropy_aggregation(how: Objective) -> str:
    named = how.entropy.aggregation
    return how.aggregation if named == "same" else named


def loss_contradiction(how: Objective, config: Any, mode: str) -> str | None:
    """Which of the actor's options would make it another objective."""
    kl, entropy = how.divergence, how.entropy
    if pulled(how):
        kinds = _KL_TYPES[kl.estimator, kl.gradient]
        wanted: dict[str, tuple[Any, ...]] = {
            "use_kl_loss": (True,), "kl_loss_coef": (kl.coefficient,), "kl_loss_type": kinds,
        }  # fmt: skip
        if wrong := _unlike(config, wanted):
            return f"verl adds the divergence, and {wrong}"
        if mode != MODES[aggregation_of_divergence(how)]:
            return _mode_text("the divergence", mode, MODES[aggregation_of_divergence(how)])
    elif option(config, "use_kl_loss"):
        return "use_kl_loss is on, which adds a divergence that the objective has not"
    if wrong := _unlike(config, {"entropy_coeff": (entropy.coefficient,)}):
        return f"verl adds the entropy, and {wrong}"
    if entropy.coefficient and mode != MODES[_entropy_aggregation(how)]:
        return _mode_text("the entropy", mode, MODES[_entropy_aggregation(how)])
    return None


def _mode_text(what: str, mode: str, expected: str) -> str:
    return f"verl adds {what} by loss_agg_mode, which is {mode!r}; expected {expected!r}"


def advantage_refusal(how: Objective) -> str | None:
    """Why an advantage estimator of verl can't serve the objective, whatever the options."""
    made, kl = how.advantage, how.divergence
    inside = kl.coefficient != 0 and kl.place in ("reward", "token-reward", "advantage")
    changed = made.baseline != "none" or made.scale != "none"
    cases = [
        (made.combine == "decoupled" or made.reward_weights is not None, "it takes several "
         "rewards of a completion apart, and verl hands its estimators their sum"),
        (inside and kl.place == "advantage", "divergence.place is 'advantage', and verl hands its "
         "estimators no log-probs"),
        (inside and kl.target != "reference", f"divergence.target is {kl.target!r}, and verl's "
         "use_kl_in_reward takes the reference"),
        (inside and (kl.clamp_in, kl.clamp_out) not in _BOUNDS, "divergence.clamp_in and "
         "clamp_out: verl's are 20 and 10"),
        (inside and made.reward_clip is not None, "reward_clip bounds the reward before the "
         "divergence is taken off, and verl has done that by then"),
        (inside and kl.place == "token-reward" and changed, "a baseline or scale of the reward of "
         "a row, with a divergence in that of each token: verl hands over their sum"),
    ]  # fmt: skip
    return next((text for wrong, text in cases if wrong), None)


def advantage_contradiction(how: Objective, config: Any) -> str | None:
    """Which of the algorithm's options would make the advantages others."""
    kl = how.divergence
    if not (kl.coefficient and kl.place in ("reward", "token-reward")):
        if option(config, "use_kl_in_reward"):
            return "use_kl_in_reward is on, which adds a divergence that the advantages have not"
        return None
    wanted: dict[str, tuple[Any, ...]] = {
        "use_kl_in_reward": (True,), "kl_penalty": _KL_TYPES[kl.estimator, "naive"],
    }  # fmt: skip
    if wrong := _unlike(config, wanted):
        return f"verl takes the divergence off the rewards, and {wrong}"
    control = option(config, "kl_ctrl")
    if wrong := _unlike(control, {"type": ("fixed",), "kl_coef": (kl.coefficient,)}):
        return f"verl takes the divergence off the rewards, and kl_ctrl.{wrong}"
    return None


def _unlike(config: Any, wanted: Mapping[str, tuple[Any, ...]]) -> str | None:
    """The first option that has another value, and what was expected."""
    for name, values in wanted.items():
        now = option(config, name)
        if now not in values:
            return f"{name} is {now!r}; expected {' or '.join(map(repr, values))}"
    return None


def option(config: Any, name: str) -> Any:
    """A setting of verl's dataclasses or of an omegaconf dictionary."""
    get = getattr(config, "get", None)
    return get(name, None) if get is not None else None
