"""B7. k1 in the loss has no expected gradient on-policy; off-policy it pushes away from old.

Statement:
    k1 = log π − log ref, and log ref does not depend on π, so ∇k1 = s:

        on-policy  E_π[∇k1] = 0,        off-policy  E_old[∇k1] = −∇KL(old‖π).

    In neither does the reference occur. Descending k1 with tokens of `old` raises KL(old‖π).

Conditions:
    k1 is differentiated as a term of the loss. In the reward, held constant, it is exact (B8).
    For tokens of a history-dependent policy the off-policy part holds for whole sequences; the
    gradient of Σ_t k1_t is that of the sequence's k1.

Proof:
    E_π[s] = 0 (A1). KL(old‖π) = const − E_old[log π], whose gradient is −E_old[s]. A step of
    size η along −E_old[∇k1] = ∇KL(old‖π) changes KL(old‖π) by +η·|∇KL(old‖π)|².

Refutes:
    "k1 in the loss is right, only noisy": with β = .04 the tiny trainer ends where it ends
    without a penalty, at .9930 and .9929 (k3: .9842), and the reference can be replaced by any
    other.

Sources:
    * allenai/open-instruct issue #534 and pull request #535, where a comment notes that with
      k1 the reference is ignored in training (formula seen)
    * Tang, Munos, "On a few pitfalls in KL divergence gradient estimation for RL",
      arXiv:2506.09477 (abstract seen)
"""

from __future__ import annotations

from rlproof import tiny
from rlproof.lab.claims._b_shared import (
    descends,
    moved,
    penalty,
    success,
    trained,
    uniform,
)
from rlproof.lab.claims.model import Number, number
from rlproof.lab.divergences import estimate, kl, kl_gradient_first, kl_gradient_second
from rlproof.lab.fixtures import p4, p4_ref2, tree_of

STEP = 1e-6


def numbers() -> tuple[Number, ...]:
    """Zero on-policy, the divergence from old off-policy, and sixty steps of training."""
    old, new, ref, tree = p4().policy, moved(), p4_ref2().held_to, tree_of(0)
    off = estimate("k1", new, ref, drawn=old).gradient
    away = estimate("k1", new, uniform(), drawn=old).gradient
    stepped = new.family.at(new.theta - STEP * off)
    size = float(off @ off)
    return (
        number("E_π[∇k1], P4 against ref2", estimate("k1", old, ref).gradient, (0.0,) * 4, 1e-12,
               "proof"),
        number("GRPO's loss with k1, β = 1 and rewards 0, P4", descends(penalty("k1"), p4()),
               (0.0,) * 4, 1e-12, "proof"),
        number("E_π[∇Σ_t k1], TREE", estimate("k1", tree.policy, tree.held_to).gradient,
               (0.0,) * 39, 1e-12, "proof"),
        number("∇KL(π‖ref), said to be followed, P4 against ref2", kl_gradient_first(old, ref),
               (0.295149, -0.179789, -0.008604, -0.106755), 1e-6, "π·(log(π/ref) − KL)"),
        number("E_old[∇k1], π = P4 moved by (.4, −.2, .1, −.3)", off,
               (-0.127626, 0.082047, 0.008606, 0.036973), 1e-6, "closed form old − π"),
        number("−∇KL(old‖π) there", -kl_gradient_second(old, new), off, 1e-12, "−(π − old)"),
        number("E_old[∇k1] with a uniform reference instead of ref2", away, off, 1e-12, "proof"),
        number("change of KL(old‖π) by a small descent step, over η·|E_old[∇k1]|²",
               (kl(old, stepped) - kl(old, new)) / (STEP * size), 1.0, 1e-4,
               "proof; the rest is O(η)"),
        *_training(),
    )  # fmt: skip


def _training() -> tuple[Number, ...]:
    where = "after 60 steps of the tiny trainer, seed 0"
    by_k1 = success(trained(lambda *_: 1.0, beta=0.04))
    without, with_k3 = (success(tiny.train(beta=beta)[0]) for beta in (0.0, 0.04))
    run = "a second trainer, vectorised, on the same random numbers"
    return (
        number(f"expected reward with k1, β = .04, {where}", by_k1, 0.992992, 1e-6, run),
        number(f"expected reward without a penalty, {where}", without, 0.992920, 1e-6, run),
        number(f"expected reward with k3, β = .04, {where}", with_k3, 0.984236, 1e-6, run),
        number("what k1 costs, as a share of what k3 costs",
               (without - by_k1) / (without - with_k3), 0.0, 0.02,
               "0 but for the second epoch, which is off-policy"),
    )  # fmt: skip
