"""Compute one claim's numbers anew."""

from rlproof.lab.claims.registry import find

claim = find("A9")
print(claim.id, claim.title)
for number in claim.numbers()[-3:]:
    print(f"  {number.name}: {number.value:.4f}, expected {number.expected}")
