"""What is said to be rows of something else."""

import ast

import pytest

from rlproof.read.parts import parts


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ('mask = b["mask_all"][rows]', {("mask", "mask_all"), ("mask", "b_mask_all")}),
        ("mask = full.mask[start : start + 4]", {("mask", "mask"), ("mask", "full_mask")}),
        ("mask = whole[rows, :]", {("mask", "whole")}),
        ("mask, adv = x[rows], y[rows, None]", {("mask", "x"), ("adv", "y")}),
        ("mask = whole[:, 1:]", set()),  # shifted, not rows
        ("mask = whole[rows, :-1]", set()),
        ('mask = batch["mask"]', set()),  # all of it
        ("mask = whole[0]", set()),
    ],
)  # fmt: skip
def test_parts(source, expected):
    assert parts(ast.parse(source)) == expected
