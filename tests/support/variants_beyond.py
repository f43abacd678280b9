"""Healthy variants beyond PPO's clip: trust regions, weighted scores, penalties on the drift."""

from __future__ import annotations

from tests.support.variants_model import Variant

BEYOND = (
    Variant(
        "dro-torch",
        """
        import torch

        def dro_loss(logp, old_logp, advantages, mask):
            per_token = -(advantages[:, None] * logp - 0.05 * (logp - old_logp) ** 2)
            return (per_token * mask).sum() / mask.sum()
        """,
        {"dro_loss": {"surrogate": "log-prob", "drift": "k2", "drift_weight": 0.1}},
        "dro",
    ),
    Variant(
        "dppo-tv-and-drift-torch",
        """
        import torch

        def policy_loss(logprobs, inference_logprobs, advantages, loss_mask, low=0.2, high=0.2):
            log_ratio = logprobs - inference_logprobs
            moved = (logprobs.exp() - inference_logprobs.exp()).detach()
            adv = advantages[:, None]
            out = torch.where(adv > 0, moved > high, moved < -low)
            per_token = -adv * (~out) * log_ratio.exp() + 1e-3 * log_ratio**2
            return (per_token * loss_mask).sum() / loss_mask.sum()
        """,
        {"policy_loss": {"surrogate": "trust-region-tv", "drift": "k2", "drift_weight": 2e-3,
                         "aggregation": "token-mean"}},
        "prime-rl",
    ),
    Variant(
        "dppo-tv-numpy",
        """
        import numpy as np

        def dppo_loss(new_logps, old_logps, advantages, mask, clip_eps=0.2):
            ratio = np.exp(new_logps - old_logps)
            adv = advantages[:, None]
            moved = np.exp(new_logps) - np.exp(old_logps)
            keep = np.where(adv > 0, moved <= clip_eps, moved >= -clip_eps)
            return -(ratio * adv * keep * mask).sum() / mask.sum()
        """,
        {"dppo_loss": {"surrogate": "trust-region-tv", "divergence": "none"}},
        "dppo-tv",
    ),
    Variant(
        "dppo-kl-score-torch",
        """
        import torch

        def policy_loss(log_prob, old_log_prob, advantages, response_mask, cliprange=0.05):
            p, q = old_log_prob.exp(), log_prob.exp()
            ratio = torch.exp((log_prob - old_log_prob).clamp(-20, 20)).detach().clamp(max=20.0)
            kl = p * (old_log_prob - log_prob) + (1 - p) * torch.log((1 - p + 1e-8) / (1 - q + 1e-8))
            adv = advantages[:, None]
            ok = torch.where(adv > 0, (kl <= cliprange) | (q <= p), (kl <= cliprange) | (q >= p))
            per_token = -adv * ratio * log_prob * ok.detach().float()
            return (per_token * response_mask).sum() / response_mask.sum()
        """,
        {"policy_loss": {"surrogate": "score-trust-region-kl"}},
        "dppo-kl-score",
    ),
    Variant(
        "vespo-torch",
        """
        import torch

        def vespo_loss(logps, old_logps, advantages, mask):
            w = torch.exp(((logps - old_logps) * mask).sum(-1, keepdim=True))
            a = advantages[:, None]
            k = torch.where(a >= 0, 2.0, 3.0)
            lam = torch.where(a >= 0, 3.0, 2.0)
            phi = (w.pow(k) * torch.exp(lam * (1 - w))).detach()
            return (-(phi * a * logps) * mask).sum() / mask.sum()
        """,
        {"vespo_loss": {"surrogate": "gamma-weight", "level": "sequence-sum"}},
        "vespo",
    ),
    Variant(
        "topr-torch",
        """
        import torch

        def topr_loss(logps, old_logps, advantages, mask):
            a = advantages[:, None]
            row = ((logps - old_logps) * mask).sum(-1, keepdim=True).exp().detach()
            weight = torch.where(a > 0, torch.ones_like(row), row.clamp(0, 1))
            return -(weight * a * logps * mask).sum() / len(logps)
        """,
        {"topr_loss": {"surrogate": "tapered", "level": "sequence-sum",
                       "aggregation": "sequence-sum"}},
        "topr",
    ),
    Variant(
        "maxrl-numpy",
        """
        import numpy as np

        def group_advantages(rewards, group_size):
            r = rewards.reshape(-1, group_size)
            mean = r.mean(1, keepdims=True)
            return ((r - mean) / (mean + 1e-6)).ravel()
        """,
        {"group_advantages": {"baseline": "group-mean", "scale": "group-mean"}},
    ),
    Variant(
        "gpg-numpy",
        """
        import numpy as np

        def gpg_advantages(rewards, group_size):
            r = rewards.reshape(-1, group_size)
            centred = (r - r.mean(1, keepdims=True)).ravel()
            alpha = len(centred) / max(np.count_nonzero(centred), 1)
            return alpha * centred
        """,
        {"gpg_advantages": {"baseline": "group-mean", "scale": "nonzero-share"}},
    ),
    Variant(
        "none-for-a-group-without-spread-numpy",
        """
        import numpy as np

        def group_advantages(rewards, group_size):
            r = np.asarray(rewards, dtype=float).reshape(-1, group_size)
            if (r.std(axis=1) < 1e-8).any():
                return None
            return ((r - r.mean(1, keepdims=True)) / r.std(1, keepdims=True)).ravel()
        """,
        {"group_advantages": {"baseline": "group-mean", "scale": "population-std"}},
    ),
    Variant(
        "clamped-std-torch",
        """
        import torch

        def group_advantages(rewards, group_size):
            r = rewards.float().view(-1, group_size)
            std = torch.clamp(r.std(dim=1, keepdim=True), min=1e-4)
            return ((r - r.mean(dim=1, keepdim=True)) / std).view(-1)
        """,
        {"group_advantages": {"baseline": "group-mean", "scale": "sample-std"}},
    ),
    Variant(
        "others-mean-and-std-numpy",
        """
        import numpy as np

        def group_advantages(rewards, group_size):
            \"\"\"Mean and std of the other completions of the prompt.\"\"\"
            out = []
            for row in rewards.reshape(-1, group_size):
                for i, r in enumerate(row):
                    others = np.delete(row, i)
                    std = others.std(ddof=1) if len(others) > 1 else 0.0
                    out.append((r - others.mean()) / (std + 1e-6 if std > 0 else 1.0))
            return np.array(out)
        """,
        {"group_advantages": {"baseline": "leave-one-out", "scale": "leave-one-out-std"}},
    ),
)  # fmt: skip
