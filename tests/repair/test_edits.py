"""Edits in other spellings than those of the pages: what changes, line by line."""

import pytest
from tests.support.repairing import repair_text

ADVANTAGES = '''
{imports}

def group_advantages(rewards, group_size, eps=1e-6):
    """Reward minus the mean of its group, over its std."""
{body}
'''
LOSS = '''
{imports}

def grpo_loss(new_logps, old_logps, advantages, mask, clip_eps=0.2):
    """Clipped surrogate over the real tokens, a loss to minimise."""
{body}
'''
NUMPY_HEAD = """\
    adv = advantages[:, None]
    ratio = np.exp(new_logps - old_logps)
    clipped = np.clip(ratio, 1 - clip_eps, 1 + clip_eps)
    per_token = -np.minimum(ratio * adv, clipped * adv)
"""
CASES = {
    "fmean and pstdev per chunk": (
        ADVANTAGES,
        "from statistics import fmean, pstdev",
        "    mean, std = fmean(rewards), pstdev(rewards)\n"
        "    return [(r - mean) / (std + eps) for r in rewards]  # z-scores",
        {
            "    result = []",
            "    for start in range(0, len(rewards), group_size):",
            "        group = rewards[start : start + group_size]",
            "        mean, std = fmean(group), pstdev(group)",
            "        result += [(r - mean) / (std + eps) for r in group]  # z-scores",
            "    return result",
        },
    ),
    "module functions along an axis": (
        ADVANTAGES,
        "import numpy as np",
        "    r = np.asarray(rewards, dtype=float)\n    return (r - np.mean(r)) / (np.std(r) + eps)",
        {
            "    r = np.asarray(rewards, dtype=float).reshape(-1, group_size)",
            "    return ((r - np.mean(r, axis=1, keepdims=True)) / "
            "(np.std(r, axis=1, keepdims=True) + eps)).ravel()",
        },
    ),
    "mean over rows, then over the batch": (
        LOSS,
        "import numpy as np",
        NUMPY_HEAD + "    return per_token.mean(axis=1).mean()",
        {"    return ((per_token * mask).sum(axis=1) / mask.sum(axis=1)).mean()"},
    ),
    "bounds the wrong way round": (
        LOSS,
        "import numpy as np",
        NUMPY_HEAD.replace("1 - clip_eps, 1 + clip_eps", "1 + clip_eps, 1 - clip_eps")
        + "    return (per_token * mask).sum() / mask.sum()",
        {"    clipped = np.clip(ratio, 1 - clip_eps, 1 + clip_eps)"},
    ),
    "a max that should be a min": (
        LOSS,
        "import math",
        "    total = count = 0\n"
        "    for i, adv in enumerate(advantages):\n"
        "        for x, y, real in zip(new_logps[i], old_logps[i], mask[i]):\n"
        "            if real:\n"
        "                ratio = math.exp(x - y)\n"
        "                clipped = max(max(ratio, 1 - clip_eps), 1 + clip_eps)\n"
        "                total -= min(ratio * adv, clipped * adv)\n"
        "                count += 1\n"
        "    return total / max(count, 1)",
        {"                clipped = min(max(ratio, 1 - clip_eps), 1 + clip_eps)"},
    ),
    "a sum in brackets": (
        LOSS,
        "import numpy as np",
        NUMPY_HEAD + "    return (per_token + 0.0).sum() / mask.sum()",
        {"    return ((per_token + 0.0) * mask).sum() / mask.sum()"},
    ),
    "a loop that counts slots": (
        LOSS,
        "import math",
        "    total = count = 0\n"
        "    for new, old, keep, adv in zip(new_logps, old_logps, mask, advantages):\n"
        "        for t, (x, y) in enumerate(zip(new, old)):\n"
        "            ratio = math.exp(x - y)\n"
        "            clipped = min(max(ratio, 1 - clip_eps), 1 + clip_eps)\n"
        "            total -= min(ratio * adv, clipped * adv)\n"
        "            count += 1\n"
        "    return total / max(count, 1)",
        {"            if not keep[t]:", "                continue"},
    ),
    "a loop without the mask": (
        LOSS,
        "import math",
        "    total = count = 0\n"
        "    for i, adv in enumerate(advantages):\n"
        "        for x, y in zip(new_logps[i], old_logps[i]):\n"
        "            ratio = math.exp(x - y)\n"
        "            clipped = min(max(ratio, 1 - clip_eps), 1 + clip_eps)\n"
        "            total -= min(ratio * adv, clipped * adv)\n"
        "            count += 1\n"
        "    return total / max(count, 1)",
        {
            "        for x, y, real in zip(new_logps[i], old_logps[i], mask[i]):",
            "            if not real:",
            "                continue",
        },
    ),
    "exp is imported by name": (
        LOSS,
        "from math import exp",
        "    total = count = 0\n"
        "    for i, adv in enumerate(advantages):\n"
        "        for x, y, real in zip(new_logps[i], old_logps[i], mask[i]):\n"
        "            if real:\n"
        "                ratio = x - y\n"
        "                clipped = min(max(ratio, 1 - clip_eps), 1 + clip_eps)\n"
        "                total -= min(ratio * adv, clipped * adv)\n"
        "                count += 1\n"
        "    return total / max(count, 1)",
        {"                ratio = exp(x - y)"},
    ),
    "math has to be imported": (
        LOSS,
        "LIMIT = 5",
        "    total = count = 0\n"
        "    for i, adv in enumerate(advantages):\n"
        "        for x, y, real in zip(new_logps[i], old_logps[i], mask[i]):\n"
        "            if real:\n"
        "                ratio = x / y\n"
        "                clipped = min(max(ratio, 1 - clip_eps), 1 + clip_eps)\n"
        "                total -= min(ratio * adv, clipped * adv)\n"
        "                count += 1\n"
        "    return total / max(count, 1)",
        {"import math", "", "                ratio = math.exp(x - y)"},
    ),
}


def put_in(old, new):
    """Lines of a patch that are new."""
    return {line[1:] for line in new.splitlines()[2:] if line.startswith("+")}


@pytest.mark.parametrize("name", CASES)
def test_edit(tmp_path, name):
    template, imports, body, expected = CASES[name]
    text = template.format(imports=imports, body=body).lstrip("\n")
    report = repair_text(tmp_path, text)
    assert report.repair is not None, "the case has no fault"
    assert report.repair.status == "verified", report.repair.message
    assert put_in(text, report.repair.patch) == expected


@pytest.mark.parametrize("ending", ["", "\n"])
def test_the_end_of_the_file_stays_as_it_is(tmp_path, ending):
    body = "    mean = sum(rewards) / len(rewards)\n    return [r - mean for r in rewards]"
    text = ADVANTAGES.format(imports="", body=body).strip("\n") + ending
    report = repair_text(tmp_path, text)
    assert report.repair.status == "verified"
    assert report.repair.text.endswith("    return result" + ending)


def test_tabs_stay_tabs(tmp_path):
    body = "    mean = sum(rewards) / len(rewards)\n    return [r - mean for r in rewards]"
    text = ADVANTAGES.format(imports="", body=body).strip("\n").replace("    ", "\t") + "\n"
    report = repair_text(tmp_path, text)
    assert report.repair.status == "verified"
    assert "\n\t\tmean = sum(group) / len(group)\n" in report.repair.text
    assert "    " not in report.repair.text
