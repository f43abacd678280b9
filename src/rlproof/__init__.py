"""rlproof: finds the bugs in a GRPO training script and proves each one with numbers."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rlproof.checked import check as check
    from rlproof.watch.record import record as record

__all__ = ["__version__", "check", "record"]
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """`rlproof.record` and `rlproof.check`, imported on first use: `import rlproof` stays light."""
    if name == "record":
        from rlproof.watch.record import record

        return record
    if name == "check":
        from rlproof.checked import check

        return check
    raise AttributeError(f"module 'rlproof' has no attribute {name!r}")
