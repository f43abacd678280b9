"""Advantages of rewards that stand in records, under other sizes, or across the rows.

Groups are (1, 0, ½, 0) and the like; each expected coordinate is what the text divides by.
"""

import pytest
from tests.support.checking import check_text, strong

BY_PROMPT = '''\
import dataclasses
from collections import defaultdict

import numpy as np


def normalize_rewards(answers):
    """Within the answers to one prompt."""
    same = defaultdict(list)
    for answer in answers:
        same[tuple(answer.prompt)].append(answer)
    out = []
    for mates in same.values():
        scores = [mate.reward for mate in mates]
        for mate in mates:
            value = {value} / (np.std(scores) + 1e-4)
            out.append(dataclasses.replace(mate, reward=value))
    return out
'''
IN_PLACE = """\
def set_advantages(group):
    scores = [item.reward for item in group.samples]
    mean = sum(scores) / len(scores)
    std = (sum((s - mean) ** 2 for s in scores) / len(scores)) ** 0.5
    for item in group.samples:
        item.advantage = (item.reward - mean) / {divisor}
"""
ROWS = """\
import statistics


class Learner:
    def advantages(self, table):
        out = []
        for row in table:
            scores = [entry["reward"] for entry in row]
            middle = statistics.fmean(scores)
            out.append([s - middle for s in scores])
        return out
"""


def only(report):
    [target] = report.targets
    return {k: target.objective[k] for k in ("baseline", "scale") if k in target.objective}


def test_records_that_share_a_prompt_are_a_group(tmp_path):
    report = check_text(tmp_path, BY_PROMPT.format(value="(mate.reward - np.mean(scores))"))
    assert only(report) == {"baseline": "group-mean", "scale": "population-std"}
    assert strong(report) == []


def test_a_wrong_sign_is_found_in_records(tmp_path):
    report = check_text(tmp_path, BY_PROMPT.format(value="(np.mean(scores) - mate.reward)"))
    assert strong(report) == ["ADV015"]


def test_records_written_to_in_place(tmp_path):
    report = check_text(tmp_path, IN_PLACE.format(divisor="(std + 1e-6)"))
    assert only(report) == {"baseline": "group-mean", "scale": "population-std"}
    assert strong(report) == []  # writing to a record is no side effect


def test_a_missing_guard_is_found_in_records(tmp_path):
    assert strong(check_text(tmp_path, IN_PLACE.format(divisor="std"))) == ["ADV004"]


def test_dictionaries_in_one_list_for_each_group(tmp_path):
    report = check_text(tmp_path, ROWS)
    assert only(report) == {"baseline": "group-mean", "scale": "none"}
    assert strong(report) == []


CROSSED = """\
def sample(model, prompt_ids, num_generations):
    return model.generate(prompt_ids.{repeated})


def group_advantages(rewards, num_generations):
    mean = rewards.view(num_generations, -1).mean(dim=0).repeat(num_generations)
    std = rewards.view(num_generations, -1).std(dim=0).repeat(num_generations)
    return (rewards - mean) / (std + 1e-4)


import torch
"""


def test_groups_across_the_rows_of_prompts_repeated_as_a_whole(tmp_path):
    report = check_text(tmp_path, CROSSED.format(repeated="repeat(num_generations, 1)"))
    found = next(t for t in report.targets if t.name == "group_advantages")
    assert (found.objective["baseline"], found.objective["scale"]) == ("group-mean", "sample-std")
    assert strong(report) == []


def test_prompts_repeated_in_place_are_no_reason_to_turn_groups(tmp_path):
    report = check_text(tmp_path, CROSSED.format(repeated="repeat_interleave(num_generations, 0)"))
    found = next(t for t in report.targets if t.name == "group_advantages")
    assert found.objective.get("baseline") != "group-mean"


ESTIMATOR = '''\
import torch


class Estimator:
    def advantages(self, prompt_ids, rewards, mask):
        """Normalised over the {over}."""
        value = (rewards - rewards.mean()) / (rewards.std() + 1e-6)
        return value.unsqueeze(-1).expand(mask.shape)
'''


@pytest.mark.parametrize("over", ["batch", "rewards"])
def test_groups_that_are_taken_and_not_read_are_no_groups(tmp_path, over):
    [target] = check_text(tmp_path, ESTIMATOR.format(over=over)).targets
    assert target.objective["baseline"] == "batch-mean"
    assert target.objective["scale"] == "batch-sample-std"


def test_prompts_as_rows_of_tokens(tmp_path):
    text = """\
import torch


def group_advantages(prompt_ids, rewards):
    out = torch.zeros_like(rewards)
    for row in torch.unique(prompt_ids, dim=0):
        same = (prompt_ids == row).all(1)
        out[same] = rewards[same] - rewards[same].mean()
    return out
"""
    assert only(check_text(tmp_path, text)) == {"baseline": "group-mean", "scale": "none"}


def test_a_registry_that_is_not_installed_stops_nothing(tmp_path):
    text = """\
import torch
import some_cluster_runtime


def register(name):
    def keep(function):
        some_cluster_runtime.put(name, function)
        return function
    return keep


@register("grpo")
def group_advantages(rewards, group_size):
    g = rewards.view(-1, group_size)
    return (g - g.mean(1, keepdim=True)).flatten()
"""
    assert only(check_text(tmp_path, text)) == {"baseline": "group-mean", "scale": "none"}


def test_a_baseline_of_the_others_is_named_where_one_group_is_given(tmp_path):
    text = """\
def advantages(rewards):
    '''Every reward of a group above the mean of the others.'''
    total = sum(rewards)
    return [r - (total - r) / (len(rewards) - 1) for r in rewards]
"""
    assert only(check_text(tmp_path, text)) == {"baseline": "leave-one-out", "scale": "none"}


LEAST = """\
import torch


def group_advantages(rewards, group_size):
    g = rewards.view(-1, group_size).{dtype}()
    spread = g.std(1, keepdim=True).clamp(min={eps})
    return ((g - g.mean(1, keepdim=True)) / spread).flatten()
"""


@pytest.mark.parametrize("eps", [1e-4, 1e-6, 1e-8])
def test_a_least_std_is_a_stabiliser(tmp_path, eps):
    # max(σ, eps) = √max(σ², eps²)
    [target] = check_text(tmp_path, LEAST.format(dtype="double", eps=eps)).targets
    assert target.objective["eps"] == pytest.approx(eps**2)
    assert target.objective["eps_place"] == "sqrt(max(var, eps))"


def test_a_least_std_below_rounding_is_no_comparison_with_zero(tmp_path):
    # in float32 the std of eight rewards of 0.2 is 1.6e-8, which is above 1e-8
    report = check_text(tmp_path, LEAST.format(dtype="float", eps=1e-8))
    assert strong(report) == ["ADV006"]
    [found] = [f for f in report.findings if f.code == "ADV006"]
    assert "eps = 1e-08" in found.message


def test_a_number_beside_the_rewards_keeps_its_default(tmp_path):
    text = """\
import numpy as np


def group_advantages(rewards, group_size, reward_scale=1.0):
    g = np.asarray(rewards).reshape(-1, group_size) * reward_scale
    return (g - g.mean(1, keepdims=True)).ravel()
"""
    assert only(check_text(tmp_path, text)) == {"baseline": "group-mean", "scale": "none"}
