"""The table from faults to claims is whole, and right."""

from rlproof.defence.violated import VIOLATED
from rlproof.faults.registry import catalogue
from rlproof.lab.claims.registry import modules

NO_MATHEMATICS = {"LOP010", "LOP012", "MET005", "OBJ001"}
"""A crash, randomness, a logged length, a published objective that is not the declared one."""


def test_every_fault_has_its_row():
    assert set(VIOLATED) == set(catalogue())


def test_every_claim_exists():
    assert {claim for ids in VIOLATED.values() for claim in ids} <= set(modules())


def test_only_what_is_no_mathematics_violates_none():
    assert {code for code, ids in VIOLATED.items() if not ids} == NO_MATHEMATICS
