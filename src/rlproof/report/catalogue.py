"""`faults`: the catalogue as a table or as JSON."""

from __future__ import annotations

from rlproof.faults.registry import catalogue

_VIEWS = {"C": "values", "S": "source", "R": "run", "M": "metrics", "D": "dump"}


def listing(style: str, width: int) -> str:
    """All faults, by code."""
    faults = list(catalogue().values())
    if style == "json":
        import msgspec

        rows = [
            {"code": f.code, "name": f.name, "severity": str(f.severity), "summary": f.summary,
             "views": [_VIEWS[v] for v in f.views]}
            for f in faults
        ]  # fmt: skip
        return msgspec.json.format(msgspec.json.encode(rows), indent=2).decode() + "\n"
    longest = max(len(f.name) for f in faults)
    lines = [f"{f.code}  {f.severity:<7}  {f.name:<{longest}}  {f.summary}" for f in faults]
    closing = f"{len(faults)} faults. `rlproof explain CODE` tells more of each."
    return "\n".join([*(line[: width + 40] for line in lines), closing]) + "\n"
