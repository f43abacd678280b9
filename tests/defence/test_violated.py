"""The table from faults to claims is whole, and right."""

from rlproof.defence.violated import VIOLATED
from rlproof.faults.registry import catalogue
from rlproof.lab.claims.registry import modules

NO_MATHEMATICS = {
    "LOP010", "LOP012", "MET005", "OBJ001", "OBJ003", *(f"RWD00{k}" for k in (1, 2, 3, 4, 5, 6, 8)),
}  # fmt: skip
"""A crash, randomness, a logged length, a published objective that is not the declared one, two
implementations of which either may be meant, what a task rewards."""


def test_every_fault_has_its_row():
    assert set(VIOLATED) == set(catalogue())


def test_every_claim_exists():
    assert {claim for ids in VIOLATED.values() for claim in ids} <= set(modules())


def test_only_what_is_no_mathematics_violates_none():
    assert {code for code, ids in VIOLATED.items() if not ids} == NO_MATHEMATICS
