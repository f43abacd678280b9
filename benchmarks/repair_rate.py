"""How many faults are repaired: the planted case of every page, and what became of it.

    python benchmarks/repair_rate.py [CODE…]

Prints one line per code: its severity, the status of its repair, how many versions were run,
the seconds, and the edit or the reason. Then the rate over errors and warnings.
"""

import sys
import tempfile
import time
from pathlib import Path

from rlproof.faults.model import Severity
from rlproof.faults.page import page
from rlproof.faults.registry import catalogue
from rlproof.judge.check import check
from rlproof.read.script import read
from rlproof.repair.fix import repair


def rate(codes: list[str]) -> tuple[int, int]:
    verified = total = 0
    with tempfile.TemporaryDirectory() as folder:
        for code in codes:
            path = Path(folder, "script.py")
            path.write_text(page(code).planted, encoding="utf-8")
            started = time.perf_counter()
            script = read(str(path))
            before = check(script)
            strong = [f for f in before.findings if f.severity is not Severity.NOTE]
            after = repair(script, before, frozenset(catalogue()))
            seconds = time.perf_counter() - started
            finding = next(f for f in after.findings if f.code == code)
            status, said = "none", "no candidate"
            if finding.severity is Severity.NOTE:
                status, said = "note", "a note: nothing is repaired for it"
            elif finding.fix is not None:
                status, said = str(finding.fix.status), finding.fix.note or finding.fix.label
            checks = after.repair.checks if after.repair else 0
            total += bool(strong)
            verified += status == "verified"
            print(
                f"{code}  {finding.severity:<7}  {status:<9}  {checks:>3}  {seconds:5.1f} s  {said}"
            )
    return verified, total


if __name__ == "__main__":
    done, of = rate(sys.argv[1:] or list(catalogue()))
    print(f"verified: {done} of {of} errors and warnings")
