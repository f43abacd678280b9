"""Healthy published variants as small scripts, each with the coordinates it must be given.

No script here holds a fault. Sources: the papers named in `rlproof.space.recipes`, and for
spelling and layout the trainers listed in the research notes (frameworks, sections 1 to 6).
"""

from __future__ import annotations

from tests.support.variants_beyond import BEYOND
from tests.support.variants_model import Variant

# --- Advantages -----------------------------------------------------------------------------

ADVANTAGES = (
    Variant(
        "population-std-lists",
        '''
        import math

        def group_advantages(rewards, group_size, eps=1e-6):
            """Centre on the group's mean and divide by its population std."""
            out = []
            for first in range(0, len(rewards), group_size):
                chunk = rewards[first:first + group_size]
                mu = sum(chunk) / len(chunk)
                sigma = math.sqrt(sum((r - mu) ** 2 for r in chunk) / len(chunk))
                out.extend((r - mu) / (sigma + eps) for r in chunk)
            return out
        ''',
        {
            "group_advantages": {
                "baseline": "group-mean",
                "scale": "population-std",
                "eps": 1e-6,
                "eps_place": "std + eps",
            }
        },
    ),
    Variant(
        "population-std-numpy",
        """
        import numpy as np

        def compute_advantages(scores: np.ndarray, n_samples: int) -> np.ndarray:
            by_prompt = scores.reshape(-1, n_samples)
            centred = by_prompt - by_prompt.mean(axis=1, keepdims=True)
            return (centred / (by_prompt.std(axis=1, keepdims=True) + 1e-4)).ravel()
        """,
        {
            "compute_advantages": {
                "baseline": "group-mean",
                "scale": "population-std",
                "eps": 1e-4,
                "eps_place": "std + eps",
            }
        },
    ),
    Variant(
        "sample-std-torch",
        """
        import torch

        def get_advantages(rewards: torch.Tensor, num_generations: int) -> torch.Tensor:
            grouped = rewards.view(-1, num_generations)
            mean = grouped.mean(dim=1).repeat_interleave(num_generations, dim=0)
            std = grouped.std(dim=1).repeat_interleave(num_generations, dim=0)
            return (rewards - mean) / (std + 1e-4)
        """,
        {
            "get_advantages": {
                "baseline": "group-mean",
                "scale": "sample-std",
                "eps": 1e-4,
                "eps_place": "std + eps",
            }
        },
    ),
    Variant(
        "sample-std-statistics",
        """
        from statistics import mean, stdev

        def group_advantages(rewards, group_size):
            groups = [rewards[i:i + group_size] for i in range(0, len(rewards), group_size)]
            return [(r - mean(g)) / (stdev(g) + 1e-6) for g in groups for r in g]
        """,
        {"group_advantages": {"baseline": "group-mean", "scale": "sample-std"}},
    ),
    Variant(
        "variance-plus-eps-torch",
        """
        import torch

        def normalize_rewards(rewards, group_size, eps=1e-5):
            r = rewards.reshape(-1, group_size)
            var = r.var(dim=-1, unbiased=False, keepdim=True)
            return ((r - r.mean(dim=-1, keepdim=True)) * torch.rsqrt(var + eps)).flatten()
        """,
        {
            "normalize_rewards": {
                "baseline": "group-mean",
                "scale": "population-std",
                "eps": 1e-5,
                "eps_place": "sqrt(var + eps)",
            }
        },
    ),
    Variant(
        "variance-plus-eps-lists",
        """
        def advantages_of(rewards, G):
            adv = [0.0] * len(rewards)
            for g in range(len(rewards) // G):
                idx = range(g * G, (g + 1) * G)
                m = sum(rewards[i] for i in idx) / G
                v = sum((rewards[i] - m) ** 2 for i in idx) / G
                for i in idx:
                    adv[i] = (rewards[i] - m) / (v + 1e-8) ** 0.5
            return adv
        """,
        {
            "advantages_of": {
                "baseline": "group-mean",
                "scale": "population-std",
                "eps": 1e-8,
                "eps_place": "sqrt(var + eps)",
            }
        },
    ),
    Variant(
        "no-std-lists",
        '''
        def centred_advantages(rewards, group_size):
            """Dr. GRPO: only subtract the mean of the group; no division by the std."""
            result = []
            while rewards:
                group, rewards = rewards[:group_size], rewards[group_size:]
                baseline = sum(group) / group_size
                result += [r - baseline for r in group]
            return result
        ''',
        {"centred_advantages": {"baseline": "group-mean", "scale": "none"}},
        absent=("eps", "sign", "factor"),
    ),
    Variant(
        "no-std-torch-switch",
        '''
        import torch

        def compute_advantage(rewards, num_generations, scale_rewards=False):
            """Advantages, divided by the group's standard deviation if scale_rewards."""
            mean_g = rewards.view(-1, num_generations).mean(1)
            std_g = rewards.view(-1, num_generations).std(1)
            adv = rewards - torch.repeat_interleave(mean_g, num_generations)
            if scale_rewards:
                adv = adv / (torch.repeat_interleave(std_g, num_generations) + 1e-4)
            return adv
        ''',
        {"compute_advantage": {"baseline": "group-mean", "scale": "none"}},
    ),
    Variant(
        "leave-one-out-numpy",
        """
        import numpy as np

        def rloo_advantages(rewards, k):
            r = np.asarray(rewards, dtype=float).reshape(-1, k)
            others = (r.sum(axis=1, keepdims=True) - r) / (k - 1)
            return (r - others).reshape(-1)
        """,
        {"rloo_advantages": {"baseline": "leave-one-out", "scale": "none"}},
        absent=("factor",),
    ),
    Variant(
        "leave-one-out-lists",
        """
        def rloo_advantages(rewards, group_size):
            adv = []
            for start in range(0, len(rewards), group_size):
                g = rewards[start:start + group_size]
                for i, r in enumerate(g):
                    rest = g[:i] + g[i + 1:]
                    adv.append(r - sum(rest) / max(len(rest), 1))
            return adv
        """,
        {"rloo_advantages": {"baseline": "leave-one-out", "scale": "none"}},
    ),
    Variant(
        "two-dimensional-rewards-numpy",
        """
        import numpy as np

        def advantages(rewards):
            mu, sd = rewards.mean(1, keepdims=True), rewards.std(1, keepdims=True)
            return (rewards - mu) / (sd + 1e-6)
        """,
        {"advantages": {"baseline": "group-mean", "scale": "population-std"}},
    ),
    Variant(
        "two-dimensional-rewards-torch",
        '''
        import torch

        def group_advantages(rewards: "Float[Tensor, 'P G']") -> "Float[Tensor, 'P G']":
            """rewards (P, G): P prompts, G completions each."""
            return (rewards - rewards.mean(dim=1, keepdim=True)) / (
                rewards.std(dim=1, keepdim=True) + 1e-4
            )
        ''',
        {"group_advantages": {"baseline": "group-mean", "scale": "sample-std"}},
    ),
    Variant(
        "two-dimensional-rewards-lists",
        """
        def grpo_advantages(rewards, eps=1e-6):
            table = []
            for group in rewards:
                mu = sum(group) / len(group)
                sd = (sum((x - mu) ** 2 for x in group) / len(group)) ** 0.5
                table.append([(x - mu) / (sd + eps) for x in group])
            return table
        """,
        {"grpo_advantages": {"baseline": "group-mean", "scale": "population-std"}},
    ),
    Variant(
        "group-ids-lists",
        """
        from collections import defaultdict

        def compute_advantages(rewards, group_ids, eps=1e-6):
            buckets = defaultdict(list)
            for r, g in zip(rewards, group_ids):
                buckets[g].append(r)
            stats = {}
            for g, values in buckets.items():
                m = sum(values) / len(values)
                stats[g] = m, (sum((v - m) ** 2 for v in values) / len(values)) ** 0.5
            return [(r - stats[g][0]) / (stats[g][1] + eps) for r, g in zip(rewards, group_ids)]
        """,
        {"compute_advantages": {"baseline": "group-mean", "scale": "population-std"}},
    ),
    Variant(
        "group-ids-torch",
        """
        import torch

        def outcome_advantage(rewards, index, epsilon=1e-6):
            out = torch.zeros_like(rewards)
            for uid in index.unique():
                member = index == uid
                scores = rewards[member]
                out[member] = (scores - scores.mean()) / (scores.std() + epsilon)
            return out
        """,
        {"outcome_advantage": {"baseline": "group-mean", "scale": "sample-std"}},
    ),
    Variant(
        "group-mean-batch-std-torch",
        '''
        import torch

        def advantages(rewards, group_size, eps=1e-4):
            """REINFORCE++-baseline: the group's mean, the std of the whole batch."""
            centred = rewards.view(-1, group_size) - rewards.view(-1, group_size).mean(1, keepdim=True)
            return centred.flatten() / (rewards.std() + eps)
        ''',
        {"advantages": {"baseline": "group-mean", "scale": "batch-sample-std"}},
    ),
    Variant(
        "group-mean-batch-std-numpy",
        """
        import numpy as np

        def scaled_advantages(rewards, num_generations):
            grid = np.reshape(rewards, (-1, num_generations))
            return (grid - grid.mean(1)[:, None]).ravel() / (np.std(rewards) + 1e-6)
        """,
        {"scaled_advantages": {"baseline": "group-mean", "scale": "batch-population-std"}},
    ),
    Variant(
        "whole-batch-numpy",
        '''
        import numpy as np

        def normalize_advantages(rewards):
            """REINFORCE++: one prompt, one completion; normalised over the global batch."""
            return (rewards - np.mean(rewards)) / (np.std(rewards) + 1e-8)
        ''',
        {"normalize_advantages": {"baseline": "batch-mean", "scale": "batch-population-std"}},
    ),
    Variant(
        "whole-batch-torch",
        """
        import torch

        def whiten_rewards(rewards, eps=1e-8):
            return (rewards - rewards.mean()) / (rewards.std() + eps)
        """,
        {"whiten_rewards": {"baseline": "batch-mean", "scale": "batch-sample-std"}},
    ),
    Variant(
        "whole-batch-lists",
        """
        def batch_advantages(rewards):
            n = len(rewards)
            mean = sum(rewards) / n
            std = (sum((r - mean) ** 2 for r in rewards) / n) ** 0.5
            return [(r - mean) / (std + 1e-6) for r in rewards]
        """,
        {"batch_advantages": {"baseline": "batch-mean", "scale": "batch-population-std"}},
    ),
)

# --- Losses, in three libraries -------------------------------------------------------------
#
# Written from parts that vary independently: what the ratio is, what the token term is, how it
# is summed. Every part is spelled differently in every library.

_LIST = '''
import math


def {name}(logps, old_logps, advantages, mask{extra}):
    """{doc}"""
    {start}
    for row, (new, old, keep, adv) in enumerate(zip(logps, old_logps, mask, advantages)):
        {row_start}
        for t, (lp, lq) in enumerate(zip(new, old)):
            if not keep[t]:
                continue
            {term}
            {add}
        {row_end}
    return {result}
'''

_NUMPY = '''
import numpy as np


def {name}(logps, old_logps, advantages, mask{extra}):
    """{doc}"""
    logps, old_logps, mask = np.asarray(logps), np.asarray(old_logps), np.asarray(mask)
    A = np.asarray(advantages)[:, None]
    {term}
    {result}
'''

_TORCH = '''
import torch
import torch.nn.functional as F


def {name}(logps, old_logps, advantages, mask{extra}):
    """{doc}"""
    A = advantages.unsqueeze(-1)
    {term}
    {result}
'''

_TERMS = {
    # name: (extra parameters, lists, NumPy, torch), the term is called `s`, to be maximised
    "clip": (
        ", clip_eps=0.2",
        "rho = math.exp(lp - lq)\n"
        "s = min(rho * adv, min(max(rho, 1 - clip_eps), 1 + clip_eps) * adv)",
        "rho = np.exp(logps - old_logps)\n"
        "s = np.minimum(rho * A, np.clip(rho, 1 - clip_eps, 1 + clip_eps) * A)",
        "rho = (logps - old_logps).exp()\n"
        "s = torch.min(rho * A, torch.clamp(rho, 1 - clip_eps, 1 + clip_eps) * A)",
    ),
    "clip-higher": (
        ", eps_low=0.2, eps_high=0.28",
        "w = math.exp(lp - lq)\n"
        "bounded = 1 - eps_low if w < 1 - eps_low else 1 + eps_high if w > 1 + eps_high else w\n"
        "s = min(w * adv, bounded * adv)",
        "w = np.exp(logps - old_logps)\n"
        "s = np.minimum(w * A, w.clip(1 - eps_low, 1 + eps_high) * A)",
        "w = torch.exp(logps - old_logps)\n"
        "s = torch.minimum(w * A, w.clamp(min=1 - eps_low, max=1 + eps_high) * A)",
    ),
    "hard-coded": (
        "",
        "r = math.exp(lp - lq)\ns = min(r * adv, max(0.8, min(1.2, r)) * adv)",
        "r = np.exp(logps - old_logps)\ns = np.minimum(r * A, np.clip(r, 0.8, 1.2) * A)",
        "r = torch.exp(logps - old_logps)\ns = torch.min(r * A, r.clamp(0.8, 1.2) * A)",
    ),
    "hard-coded-higher": (
        "",
        "r = math.exp(lp - lq)\ns = min(r * adv, max(0.8, min(1.28, r)) * adv)",
        "r = np.exp(logps - old_logps)\ns = np.minimum(r * A, np.clip(r, 0.8, 1.28) * A)",
        "r = torch.exp(logps - old_logps)\ns = torch.min(r * A, r.clamp(0.8, 1.28) * A)",
    ),
    "max-of-negatives": (
        ", cliprange=0.2",
        "ratio = math.exp(lp - lq)\n"
        "s = -max(-adv * ratio, -adv * min(max(ratio, 1 - cliprange), 1 + cliprange))",
        "ratio = np.exp(logps - old_logps)\n"
        "s = -np.maximum(-A * ratio, -A * np.clip(ratio, 1 - cliprange, 1 + cliprange))",
        "ratio = torch.exp(logps - old_logps)\n"
        "pg_losses = -A * ratio\n"
        "pg_losses2 = -A * torch.clamp(ratio, 1.0 - cliprange, 1.0 + cliprange)\n"
        "s = -torch.max(pg_losses, pg_losses2)",
    ),
    "dual-clip": (
        ", clip_eps=0.2, dual_clip=3.0",
        "rho = math.exp(lp - lq)\n"
        "s = min(rho * adv, min(max(rho, 1 - clip_eps), 1 + clip_eps) * adv)\n"
        "if adv < 0:\n"
        "    s = max(s, dual_clip * adv)",
        "rho = np.exp(logps - old_logps)\n"
        "inner = np.minimum(rho * A, np.clip(rho, 1 - clip_eps, 1 + clip_eps) * A)\n"
        "s = np.where(A < 0, np.maximum(inner, dual_clip * A), inner)",
        "rho = torch.exp(logps - old_logps)\n"
        "inner = torch.min(rho * A, rho.clamp(1 - clip_eps, 1 + clip_eps) * A)\n"
        "s = torch.where(A < 0, torch.max(inner, dual_clip * A), inner)",
    ),
    "importance-sampling": (
        "",
        "s = math.exp(lp - lq) * adv",
        "s = np.exp(logps - old_logps) * A",
        "s = torch.exp(logps - old_logps) * A",
    ),
}

_SUMS = {
    # name: (extra, lists (start, row_start, add, row_end, result), NumPy, torch)
    "token-mean": (
        "",
        ("acc, n = 0.0, 0", "pass", "acc -= s; n += 1", "pass", "acc / n"),
        "return -(s * mask).sum() / mask.sum()",
        "return -(s * mask).sum() / mask.sum()",
    ),
    "sequence-mean": (
        "",
        (
            "rows = []",
            "terms = []",
            "terms.append(-s)",
            "rows.append(sum(terms) / len(terms))",
            "sum(rows) / len(rows)",
        ),
        "per_row = (s * mask).sum(axis=1) / np.maximum(mask.sum(axis=1), 1)\n"
        "return -np.mean(per_row)",
        "loss = -s\nreturn ((loss * mask).sum(-1) / mask.sum(-1).clamp(min=1.0)).mean()",
    ),
    "constant-argument": (
        ", max_len=8",
        ("acc = 0.0", "pass", "acc += s", "pass", "-acc / (len(logps) * max_len)"),
        "return -((s * mask).sum(axis=-1) / max_len).mean()",
        "return -(s * mask).sum() / (logps.size(0) * max_len)",
    ),
    "constant-hard-coded": (
        "",
        ("acc = 0.0", "pass", "acc += s", "pass", "-acc / 256"),
        "return -np.sum(s * mask) / 256.0",
        "return -torch.where(mask.bool(), s, torch.zeros_like(s)).sum() / 256.0",
    ),
    "sequence-sum": (
        "",
        ("sums = []", "sub = 0.0", "sub += s", "sums.append(sub)", "-sum(sums) / len(sums)"),
        "return -(s * mask).sum(-1).mean()",
        "return -s.masked_fill(mask == 0, 0.0).sum(dim=-1).mean()",
    ),
    "sum": (
        "",
        ("acc = 0.0", "pass", "acc += s", "pass", "-acc"),
        "return -(s * mask).sum()",
        "return -(s * mask.float()).sum()",
    ),
}

_SURROGATES: dict[str, dict[str, str | float]] = {
    "clip": {"ratio": "token", "surrogate": "min-clip", "clip_low": 0.2, "clip_high": 0.2,
             "clip_from": "arguments"},
    "clip-higher": {"ratio": "token", "surrogate": "min-clip", "clip_from": "arguments"},
    "hard-coded": {"ratio": "token", "surrogate": "min-clip", "clip_low": 0.2, "clip_high": 0.2,
                   "clip_from": "constant"},
    "hard-coded-higher": {"ratio": "token", "surrogate": "min-clip", "clip_low": 0.2,
                          "clip_high": 0.28, "clip_from": "constant"},
    "max-of-negatives": {"ratio": "token", "surrogate": "min-clip", "clip_from": "arguments"},
    "dual-clip": {"ratio": "token", "surrogate": "dual-clip", "cap": 3.0},
    "importance-sampling": {"ratio": "token", "surrogate": "unclipped"},
}  # fmt: skip

_AGGREGATIONS = {
    "token-mean": "token-mean",
    "sequence-mean": "sequence-mean",
    "constant-argument": "constant-per-sequence",
    "constant-hard-coded": "constant",
    "sequence-sum": "sequence-sum",
    "sum": "sum",
}

_PAIRS = (
    ("clip", "token-mean", "grpo"),
    ("clip", "sequence-mean", "grpo"),
    ("clip", "constant-argument", "dr_grpo"),
    ("clip", "constant-hard-coded", "dr_grpo"),
    ("clip", "sequence-sum", "dr_grpo"),
    ("clip", "sum", None),
    ("clip-higher", "token-mean", "dapo"),  # its defaults are .2 and .28
    ("hard-coded", "sequence-mean", "grpo"),
    ("hard-coded-higher", "token-mean", "dapo"),
    ("max-of-negatives", "token-mean", "grpo"),
    ("dual-clip", "token-mean", "grpo"),
    ("importance-sampling", "sequence-mean", "grpo"),
)


def _built(library: str, term: str, total: str, recipe: str | None) -> Variant:
    extra, *terms = _TERMS[term]
    more, rows, numpy_sum, torch_sum = _SUMS[total]
    parts = {"name": "policy_loss", "extra": extra + more, "doc": "The loss to minimise."}
    if library == "list":
        start, row_start, add, row_end, result = rows
        source = _LIST.format(
            **parts, start=start, row_start=row_start, row_end=row_end, result=result, add=add,
            term=terms[0].replace("\n", "\n" + " " * 12),
        )  # fmt: skip
    else:
        numpy = library == "numpy"
        source = (_NUMPY if numpy else _TORCH).format(
            **parts,
            term=terms[1 if numpy else 2].replace("\n", "\n    "),
            result=(numpy_sum if numpy else torch_sum).replace("\n", "\n    "),
        )
    expected = {
        **_SURROGATES[term], "aggregation": _AGGREGATIONS[total], "padding": "masked",
        "surrogate_weight": -1.0, "divergence": "none", "level": "token",
    }  # fmt: skip
    if _AGGREGATIONS[total].startswith("constant"):
        expected["factor"] = 1 / 256 if total == "constant-hard-coded" else 0.125
    return Variant(f"{term}-{total}-{library}", source, {"policy_loss": expected}, recipe)


BUILT_LOSSES = tuple(
    _built(library, term, total, recipe)
    for term, total, recipe in _PAIRS
    for library in ("list", "numpy", "torch")
)

# --- Losses written by hand -----------------------------------------------------------------

_CLIPPED = {"ratio": "token", "surrogate": "min-clip", "surrogate_weight": -1.0,
            "padding": "masked", "level": "token"}  # fmt: skip

LOSSES = (
    Variant(
        "nll-names",
        '''
        import torch

        def ppo_loss(nll, old_nll, adv, mask, clip=0.2):
            """nll = -log pi of the sampled tokens, so that the ratio is exp(old - new)."""
            ratio = torch.exp(old_nll - nll)
            surr = torch.min(ratio * adv[:, None], ratio.clamp(1 - clip, 1 + clip) * adv[:, None])
            return -(surr * mask).sum() / mask.sum()
        ''',
        {"ppo_loss": {**_CLIPPED, "aggregation": "token-mean", "divergence": "none"}},
        "grpo",
    ),
    Variant(
        "negative-log-probs-by-value",
        '''
        import math

        def token_logps(theta, rows, tokens):
            """Cross entropy of every token."""
            out = []
            for p, line in zip(rows, tokens):
                z = math.log(sum(math.exp(x) for x in theta[p]))
                out.append([z - theta[p][t] for t in line])
            return out

        def loss(new_logps, old_logps, advantages, mask, clip_eps=0.2):
            total = count = 0
            for i in range(len(mask)):
                for j in range(len(mask[i])):
                    if mask[i][j]:
                        ratio = math.exp(old_logps[i][j] - new_logps[i][j])
                        low = min(max(ratio, 1 - clip_eps), 1 + clip_eps)
                        total += min(ratio * advantages[i], low * advantages[i])
                        count += 1
            return -total / count
        ''',
        {"loss": {**_CLIPPED, "aggregation": "token-mean", "divergence": "none"}},
        "grpo",
    ),
    Variant(
        "detached-ratio-torch",
        """
        import torch

        def compute_loss(per_token_logps, ref_per_token_logps, advantages, completion_mask, beta=0.04):
            kl = torch.exp(ref_per_token_logps - per_token_logps)
            kl = kl - (ref_per_token_logps - per_token_logps) - 1
            gain = torch.exp(per_token_logps - per_token_logps.detach()) * advantages.unsqueeze(1)
            per_token_loss = -(gain - beta * kl)
            lengths = completion_mask.sum(dim=1)
            return ((per_token_loss * completion_mask).sum(dim=1) / lengths).mean()
        """,
        {
            "compute_loss": {
                "ratio": "detached",
                "surrogate": "unclipped",
                "divergence": "k3",
                "divergence_weight": 1.0,
                "aggregation": "sequence-mean",
                "level": "token",
            }
        },
        "grpo",
    ),
    Variant(
        "reinforce-lists",
        """
        def reinforce_loss(logprobs, advantages, mask):
            picked = [lp * a for row, a, m in zip(logprobs, advantages, mask)
                      for lp, keep in zip(row, m) if keep]
            return -sum(picked) / len(picked)
        """,
        {
            "reinforce_loss": {
                "surrogate": "log-prob",
                "aggregation": "token-mean",
                "surrogate_weight": -1.0,
                "divergence": "none",
            }
        },
    ),
    Variant(
        "reinforce-torch",
        """
        import torch

        def pg_loss(logprobs, advantages, mask):
            seq_logp = (logprobs * mask).sum(-1)
            return -(seq_logp * advantages).mean()
        """,
        {"pg_loss": {"surrogate": "log-prob", "aggregation": "sequence-sum"}},
    ),
    Variant(
        "rloo-two-functions",
        """
        import numpy as np

        def rloo_advantages(rewards, group_size):
            r = np.asarray(rewards, dtype=float).reshape(-1, group_size)
            return (r - (r.sum(1, keepdims=True) - r) / (group_size - 1)).ravel()

        def rloo_loss(logprobs, advantages, mask):
            return -np.mean(np.asarray(advantages) * (np.asarray(logprobs) * mask).sum(axis=1))
        """,
        {
            "rloo_advantages": {"baseline": "leave-one-out", "scale": "none"},
            "rloo_loss": {"surrogate": "log-prob", "aggregation": "sequence-sum"},
        },
        "rloo",
    ),
    Variant(
        "cispo-torch",
        '''
        import torch

        def cispo_loss(logps, old_logps, advantages, mask, eps_low=1.0, eps_high=2.0):
            """Clipped importance weight, stopped; gradient through log pi only."""
            weight = torch.exp(logps - old_logps).clamp(1 - eps_low, 1 + eps_high).detach()
            return -(weight * advantages[:, None] * logps * mask).sum() / mask.sum()
        ''',
        {"cispo_loss": {"ratio": "token", "surrogate": "cispo", "aggregation": "token-mean"}},
        "cispo",
    ),
    Variant(
        "cispo-hard-coded-torch",
        """
        import torch

        def loss_fn(log_probs, old_log_probs, advantages, mask):
            with torch.no_grad():
                is_weight = torch.exp(log_probs - old_log_probs).clamp(max=3.0)
            objective = is_weight * advantages.view(-1, 1) * log_probs
            return -(objective * mask).sum() / mask.sum().clamp(min=1)
        """,
        {
            "loss_fn": {
                "ratio": "token",
                "surrogate": "cispo",
                "aggregation": "token-mean",
                "clip_high": 2.0,
            }
        },
        "cispo",
    ),
    Variant(
        "gspo-torch",
        '''
        import torch

        def gspo_loss(logps, old_logps, advantages, mask, eps_low=3e-4, eps_high=4e-4):
            """One ratio per sequence: the geometric mean of its token ratios."""
            lengths = mask.sum(-1).clamp(min=1)
            log_ratio = ((logps - old_logps) * mask).sum(-1) / lengths
            s = log_ratio.exp()
            surr = torch.min(s * advantages, s.clamp(1 - eps_low, 1 + eps_high) * advantages)
            return -surr.mean()
        ''',
        {
            "gspo_loss": {
                "ratio": "token",
                "surrogate": "min-clip",
                "level": "sequence-mean",
                "aggregation": "sequence-mean",
            }
        },
        "gspo",
    ),
    Variant(
        "gspo-lists",
        """
        from math import exp

        def gspo_loss(logps, old_logps, advantages, mask, eps=0.2):
            total = 0.0
            for new, old, m, a in zip(logps, old_logps, mask, advantages):
                n = sum(m)
                s = exp(sum((x - y) * k for x, y, k in zip(new, old, m)) / n)
                total += min(s * a, max(1 - eps, min(1 + eps, s)) * a)
            return -total / len(mask)
        """,
        {
            "gspo_loss": {
                "surrogate": "min-clip",
                "level": "sequence-mean",
                "aggregation": "sequence-mean",
            }
        },
        "gspo",
    ),
    Variant(
        "gspo-numpy",
        """
        import numpy as np

        def sequence_policy_loss(logps, old_logps, advantages, mask, clip_eps=0.2):
            log_ratio = ((logps - old_logps) * mask).sum(1) / mask.sum(1)
            s = np.exp(log_ratio)
            return -np.minimum(s * advantages, np.clip(s, 1 - clip_eps, 1 + clip_eps) * advantages).mean()
        """,
        {
            "sequence_policy_loss": {
                "surrogate": "min-clip",
                "level": "sequence-mean",
                "aggregation": "sequence-mean",
            }
        },
        "gspo",
    ),
    Variant(
        "k3-numpy",
        """
        import numpy as np

        def grpo_loss(new_logps, old_logps, ref_logps, advantages, mask, *, clip_eps=0.2, beta=0.04):
            r = np.exp(new_logps - old_logps)
            gain = np.minimum(r * advantages[:, None],
                              np.clip(r, 1 - clip_eps, 1 + clip_eps) * advantages[:, None])
            gap = ref_logps - new_logps
            kl = np.expm1(gap) - gap
            return ((beta * kl - gain) * mask).sum() / mask.sum()
        """,
        {
            "grpo_loss": {
                **_CLIPPED,
                "divergence": "k3",
                "divergence_weight": 1.0,
                "beta_from": "arguments",
                "aggregation": "token-mean",
            }
        },
        "grpo",
    ),
    Variant(
        "k2-torch",
        """
        import torch

        def policy_loss(logps, old_logps, ref_logps, advantages, mask, clip_eps=0.2, kl_coef=0.1):
            ratio = torch.exp(logps - old_logps)
            adv = advantages.unsqueeze(-1).expand_as(ratio)
            surr = torch.min(ratio * adv, ratio.clamp(1 - clip_eps, 1 + clip_eps) * adv)
            penalty = 0.5 * (logps - ref_logps).square()
            return ((kl_coef * penalty - surr) * mask).sum() / mask.sum()
        """,
        {
            "policy_loss": {
                **_CLIPPED,
                "divergence": "k2",
                "divergence_weight": 1.0,
                "aggregation": "token-mean",
            }
        },
        "grpo",
    ),
    Variant(
        "absolute-difference-lists",
        """
        import math

        def grpo_loss(logps, old_logps, ref_logps, advantages, mask, beta=0.05, clip_eps=0.2):
            total, n = 0.0, 0
            for i, row in enumerate(mask):
                for t, keep in enumerate(row):
                    if keep == 0:
                        continue
                    r = math.exp(logps[i][t] - old_logps[i][t])
                    c = sorted((1 - clip_eps, r, 1 + clip_eps))[1]
                    total -= min(r * advantages[i], c * advantages[i])
                    total += beta * abs(logps[i][t] - ref_logps[i][t])
                    n += 1
            return total / n
        """,
        {
            "grpo_loss": {
                **_CLIPPED,
                "divergence": "absolute",
                "divergence_weight": 1.0,
                "aggregation": "token-mean",
            }
        },
        "grpo",
    ),
    Variant(
        "k1-in-the-reward",
        '''
        import numpy as np

        def shape_rewards(rewards, logps, ref_logps, mask, beta=0.05):
            """r - beta * sum over the sequence of log pi - log pi_ref."""
            kl = ((logps - ref_logps) * mask).sum(axis=1)
            return rewards - beta * kl

        def group_advantages(rewards, group_size):
            g = rewards.reshape(-1, group_size)
            return ((g - g.mean(1, keepdims=True)) / (g.std(1, keepdims=True) + 1e-6)).reshape(-1)

        def policy_loss(logps, old_logps, advantages, mask, clip_eps=0.2):
            ratio = np.exp(logps - old_logps)
            adv = advantages[:, None]
            surr = np.minimum(ratio * adv, np.clip(ratio, 1 - clip_eps, 1 + clip_eps) * adv)
            return -(surr * mask).sum() / mask.sum()
        ''',
        {
            "group_advantages": {"baseline": "group-mean", "scale": "population-std"},
            "policy_loss": {**_CLIPPED, "divergence": "none", "aggregation": "token-mean"},
        },
        "grpo",
    ),
    Variant(
        "beta-hard-coded-torch",
        """
        import torch

        EPS, BETA = 0.2, 0.04

        def masked_mean(x, mask):
            return (x * mask).sum(-1) / mask.sum(-1).clamp(min=1)

        def grpo_loss(logp, old_logp, ref_logp, advantages, mask):
            ratio = torch.exp(logp - old_logp)
            a = advantages[:, None]
            pg = -torch.minimum(ratio * a, torch.clip(ratio, 1 - EPS, 1 + EPS) * a)
            diff = ref_logp - logp
            kl = torch.exp(diff) - diff - 1.0
            return masked_mean(pg + BETA * kl, mask).mean(), {"kl": masked_mean(kl, mask).mean()}
        """,
        {
            "grpo_loss": {
                **_CLIPPED,
                "divergence": "k3",
                "divergence_weight": 0.04,
                "beta_from": "constant",
                "clip_from": "constant",
                "aggregation": "sequence-mean",
            }
        },
        "grpo",
    ),
    Variant(
        "beta-hard-coded-lists",
        """
        import math

        def loss(new, old, ref, adv, mask):
            out = []
            for i in range(len(new)):
                acc = 0.0
                for j in range(len(new[i])):
                    w = math.exp(new[i][j] - old[i][j])
                    pg = min(w * adv[i], min(1.2, max(0.8, w)) * adv[i])
                    d = ref[i][j] - new[i][j]
                    acc += mask[i][j] * (0.01 * (math.exp(d) - d - 1) - pg)
                out.append(acc / max(1, sum(mask[i])))
            return sum(out) / len(out)
        """,
        {
            "loss": {
                **_CLIPPED,
                "divergence": "k3",
                "divergence_weight": 0.01,
                "beta_from": "constant",
                "aggregation": "sequence-mean",
            }
        },
        "grpo",
    ),
    Variant(
        "objective-to-maximise-lists",
        '''
        import math

        def grpo_objective(logps, old_logps, ref_logps, advantages, mask, clip_eps=0.2, beta=0.04):
            """The objective that training maximises, by gradient ascent."""
            total = count = 0.0
            for i, a in enumerate(advantages):
                for t, keep in enumerate(mask[i]):
                    if keep:
                        r = math.exp(logps[i][t] - old_logps[i][t])
                        d = ref_logps[i][t] - logps[i][t]
                        total += min(r * a, min(max(r, 1 - clip_eps), 1 + clip_eps) * a)
                        total -= beta * (math.exp(d) - d - 1)
                        count += 1
            return total / count
        ''',
        {
            "grpo_objective": {
                "ratio": "token",
                "surrogate": "min-clip",
                "surrogate_weight": 1.0,
                "divergence": "k3",
                "divergence_weight": -1.0,
                "aggregation": "token-mean",
            }
        },
        "grpo",
    ),
    Variant(
        "objective-to-maximise-torch",
        '''
        import torch

        def surrogate(logps, old_logps, advantages, mask, clip_eps=0.2):
            """Clipped surrogate J; maximise it."""
            ratio = (logps - old_logps).exp()
            adv = advantages[:, None]
            j = torch.minimum(ratio * adv, ratio.clamp(1 - clip_eps, 1 + clip_eps) * adv)
            return (j * mask).sum() / mask.sum()

        def train(model, batches, lr=0.1):
            for ids, old, adv, mask in batches:
                logps = model(ids)
                grads = torch.autograd.grad(surrogate(logps, old, adv, mask), model.parameters())
                with torch.no_grad():
                    for p, g in zip(model.parameters(), grads):
                        p.add_(lr * g)
        ''',
        {
            "surrogate": {
                "ratio": "token",
                "surrogate": "min-clip",
                "surrogate_weight": 1.0,
                "aggregation": "token-mean",
            }
        },
        "grpo",
    ),
    Variant(
        "metrics-in-a-dict-torch",
        """
        import torch

        def grpo_step_loss(new_logps, old_logps, advantages, response_mask, *, clip_low=0.2, clip_high=0.28):
            mask = response_mask.float()
            log_ratio = new_logps - old_logps
            ratio = torch.exp(log_ratio)
            adv = advantages.reshape(-1, 1)
            clipped = torch.where(
                ratio < 1 - clip_low, torch.full_like(ratio, 1 - clip_low),
                torch.where(ratio > 1 + clip_high, torch.full_like(ratio, 1 + clip_high), ratio),
            )
            per_token = -torch.minimum(ratio * adv, clipped * adv)
            loss = (per_token * mask).sum() / mask.sum().clamp(min=1)
            with torch.no_grad():
                frac = ((ratio < 1 - clip_low) | (ratio > 1 + clip_high)).float()
                frac = (frac * mask).sum() / mask.sum().clamp(min=1)
            return {"clip_frac": frac, "loss": loss}
        """,
        {"grpo_step_loss": {**_CLIPPED, "divergence": "none", "aggregation": "token-mean"}},
        "dapo",
    ),
    Variant(
        "gather-inside-a-helper-torch",
        """
        import torch
        import torch.nn.functional as F

        def selected_logps(logits, labels):
            logp = F.log_softmax(logits.float(), dim=-1)
            return logp.gather(-1, labels.unsqueeze(-1)).squeeze(-1)

        def grpo_loss(logps, old_logps, advantages, loss_mask, epsilon=0.2):
            keep = loss_mask.to(logps.dtype)
            coef_1 = torch.exp(logps - old_logps)
            coef_2 = torch.clamp(coef_1, 1 - epsilon, 1 + epsilon)
            per_token_loss1 = coef_1 * advantages.view(-1, 1)
            per_token_loss2 = coef_2 * advantages.view(-1, 1)
            per_token_loss = -torch.min(per_token_loss1, per_token_loss2)
            return ((per_token_loss * keep).sum(-1) / keep.sum(-1).clamp(min=1.0)).mean()
        """,
        {"grpo_loss": {**_CLIPPED, "divergence": "none", "aggregation": "sequence-mean"}},
        "grpo",
    ),
    Variant(
        "dr-grpo-two-functions",
        """
        import torch

        MAX_TOKENS = 64

        def group_advantages(rewards, num_generations):
            r = rewards.view(-1, num_generations)
            return (r - r.mean(-1, keepdim=True)).view(-1)

        def dr_grpo_loss(logps, old_logps, advantages, mask, clip_eps=0.2):
            ratio = torch.exp(logps - old_logps)
            a = advantages.unsqueeze(1)
            s = torch.min(ratio * a, ratio.clamp(1 - clip_eps, 1 + clip_eps) * a)
            return -(s * mask).sum(-1).div(MAX_TOKENS).mean()
        """,
        {
            "group_advantages": {"baseline": "group-mean", "scale": "none"},
            "dr_grpo_loss": {**_CLIPPED, "aggregation": "constant-per-sequence", "factor": 1 / 64},
        },
        "dr_grpo",
    ),
    Variant(
        "reinforce-plus-plus-two-functions",
        """
        import numpy as np

        def whiten_advantages(rewards):
            return (rewards - rewards.mean()) / (rewards.std() + 1e-8)

        def actor_loss(logprobs, old_logprobs, advantages, mask, cliprange=0.2):
            ratio = np.exp(logprobs - old_logprobs)
            adv = advantages[:, None]
            pg1, pg2 = -adv * ratio, -adv * np.clip(ratio, 1 - cliprange, 1 + cliprange)
            return np.sum(np.maximum(pg1, pg2) * mask) / np.sum(mask)
        """,
        {
            "whiten_advantages": {"baseline": "batch-mean", "scale": "batch-population-std"},
            "actor_loss": {**_CLIPPED, "aggregation": "token-mean"},
        },
        "reinforce++",
    ),
)

VARIANTS = (*ADVANTAGES, *BUILT_LOSSES, *LOSSES, *BEYOND)
