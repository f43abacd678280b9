"""Divergences between two policies of one family, exactly: values, gradients, estimators.

Both directions have names: KL(π‖ref) is `kl(policy, reference)`, KL(ref‖π) is
`kl(reference, policy)`. All values in nats. Shapes: N sequences, T token slots, D parameters.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rlproof.lab.policies import Floats, Policy
from rlproof.space.divergences import divergence


def kl(p: Policy, q: Policy) -> float:
    """KL(p‖q) = Σ p·(log p − log q) over whole sequences."""
    return float(p.expect(p.sequence_logps - q.sequence_logps))


def kl_gradient_first(p: Policy, q: Policy) -> Floats:
    """∂KL(p‖q)/∂θ_p = Σ p·(log p − log q)·∇log p."""
    gradient: Floats = p.expect((p.sequence_logps - q.sequence_logps)[:, None] * p.scores)
    return gradient


def kl_gradient_second(p: Policy, q: Policy) -> Floats:
    """∂KL(p‖q)/∂θ_q = −Σ p·∇log q."""
    gradient: Floats = -p.expect(q.scores)
    return gradient


def chi_square(p: Policy, q: Policy) -> float:
    """χ²(p‖q) = Σ p²/q − 1."""
    return float(p.expect(np.exp(p.sequence_logps - q.sequence_logps))) - 1


def chi_square_gradient_first(p: Policy, q: Policy) -> Floats:
    """∂χ²(p‖q)/∂θ_p = 2·Σ p²/q·∇log p."""
    gradient: Floats = 2 * p.expect(np.exp(p.sequence_logps - q.sequence_logps)[:, None] * p.scores)
    return gradient


def chi_square_gradient_second(p: Policy, q: Policy) -> Floats:
    """∂χ²(p‖q)/∂θ_q = −Σ p²/q·∇log q."""
    gradient: Floats = -p.expect(np.exp(p.sequence_logps - q.sequence_logps)[:, None] * q.scores)
    return gradient


@dataclass(frozen=True, eq=False)
class Estimate:
    """An estimator d of one sequence: its value, and what it does as a loss or as a reward."""

    mean: float
    """E[d], nats."""
    sd: float
    """Standard deviation of d for one sequence, nats."""
    gradient: Floats
    """E[∂d/∂θ]: the direction that d gives as a term of the loss."""
    gradient_sd: float
    """√E|∂d/∂θ − E[∂d/∂θ]|²."""
    in_reward: Floats
    """E[d·∇log π]: the direction that d gives as a penalty in the reward, held constant."""


def estimate(
    name: str,
    policy: Policy,
    reference: Policy,
    *,
    drawn: Policy | Floats | None = None,
    level: str = "token",
    gradient: str = "naive",
) -> Estimate:
    """What an estimator of the divergence from `policy` to `reference` gives in expectation.

    Args:
        name: a key of `rlproof.space.divergences.ESTIMATORS`, such as k3.
        policy: π, the policy that is trained.
        reference: whom it is held close to.
        drawn: who draws the sequences: a policy, or probabilities (N,), as of a truncated
            sampler; None is `policy`. `ratio-weighted` gradients divide by a policy only.
        level: `token` sums d of every token; `sequence` takes d of the summed log-probabilities.
        gradient: one of `rlproof.space.divergences.GRADIENTS`.

    Raises:
        ValueError: an unknown level, or a ratio to probabilities that are no policy.
    """
    if isinstance(drawn, np.ndarray) and gradient == "ratio-weighted":
        raise ValueError("a ratio needs the policy that draws, not only its probabilities")
    old = drawn if isinstance(drawn, Policy) else policy
    probs_N = drawn if isinstance(drawn, np.ndarray) else old.probs
    value_N, slopes_ND = _values(name, policy, reference, old, level, gradient)
    mean, gradient_D = float(probs_N @ value_N), probs_N @ slopes_ND
    return Estimate(
        mean=mean,
        sd=float(np.sqrt(probs_N @ (value_N - mean) ** 2)),
        gradient=gradient_D,
        gradient_sd=float(np.sqrt(probs_N @ ((slopes_ND - gradient_D) ** 2).sum(axis=1))),
        in_reward=probs_N @ (value_N[:, None] * policy.scores),
    )


def _values(
    name: str, policy: Policy, reference: Policy, old: Policy, level: str, gradient: str
) -> tuple[Floats, Floats]:
    """d (N,) and ∂d/∂θ (N, D) of every sequence."""
    if level == "sequence":
        new, ref, before = policy.sequence_logps, reference.sequence_logps, old.sequence_logps
        value, slope = divergence(new, ref, name, gradient, np.exp(new - before))
        return value, slope[:, None] * policy.scores
    if level != "token":
        raise ValueError(f"level = {level!r}; expected token or sequence")
    new, ref, mask = policy.logps, reference.logps, policy.family.mask
    value, slope = divergence(new, ref, name, gradient, np.exp(new - old.logps))
    return (value * mask).sum(axis=1), np.einsum("nt,ntd->nd", slope * mask, policy.token_scores)
