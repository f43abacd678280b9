"""What the formulas need of an array library: its namespace, and how to stop a gradient.

The formulas run on whatever the caller gives: NumPy in core, PyTorch or JAX when the caller
uses them (array-api-compat).
"""

from __future__ import annotations

from typing import Any

Array = Any
Pair = tuple[Array, Array]
"""A value and its closed-form slope."""


_KNOWN: dict[type, Any] = {}
"""The namespace of a type of arrays: to ask for it costs as much as a small formula."""


def namespace(*arrays: Array) -> Any:
    """The array namespace that these arrays belong to."""
    from array_api_compat import array_namespace

    kinds = {type(array) for array in arrays}
    if len(kinds) > 1:
        return array_namespace(*arrays)
    [kind] = kinds
    if kind not in _KNOWN:
        _KNOWN[kind] = array_namespace(*arrays)
    return _KNOWN[kind]


def stop_gradient(x: Array) -> Array:
    """x as a constant: what `detach` and `stop_gradient` give."""
    if hasattr(x, "detach"):
        return x.detach()
    if type(x).__module__.startswith(("jax", "jaxlib")):
        import jax

        return jax.lax.stop_gradient(x)
    return x


def where(condition: Array, yes: Array, no: Array | float) -> Array:
    """A choice per entry; the branch not taken may hold NaN without harm to the value."""
    xp = namespace(condition, yes)
    other = no if hasattr(no, "shape") else xp.full_like(yes, no)
    return xp.where(condition, yes, other)
