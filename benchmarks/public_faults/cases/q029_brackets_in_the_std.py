# entry: Q029
# source: dvlab-research/Seg-Zero#104
# expect: silent
# answer: ADV001 group
import torch


def group_scores(scores, epsilon=1e-6):
    """Scores of one prompt's answers; the brackets add an axis of one."""
    rows = torch.stack(list(scores))
    mean = torch.mean(torch.stack([rows]))
    std = torch.std(torch.stack([rows]))
    return (rows - mean) / (std + epsilon)


def outcome_advantages(rewards, group_size):
    return torch.cat([group_scores(rewards[k : k + group_size]) for k in range(0, len(rewards), group_size)])
