"""How many faulty scripts are repaired and verified: the case corpus, and the seed script.

    python benchmarks/repair_rate.py [--seed] [NAME…]

One line a script: the status of its repair, how many versions were run, the cases, the seconds,
its faults, and why it went no further. Then the rates. `--seed` adds the 127 subsets of the seed
script's faults; a NAME limits the corpus to cases whose name has it.
"""

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.cases.reading import every
from tests.support.rates import Outcome, of_case, of_subset, rate
from tests.support.warm import warm_children
from tests.test_subsets import LETTERS, SUBSETS


def outcomes(names: list[str], seed: bool) -> list[Outcome]:
    """All of them, in order; each is printed when it is there."""
    cases = [c for c in every() if not names or any(name in c.name for name in names)]
    found = []
    with TemporaryDirectory() as folder, warm_children(), ThreadPoolExecutor(2) as pool:
        running = [pool.submit(of_case, case, Path(folder)) for case in cases]
        subsets = [s for s in SUBSETS if s != LETTERS] if seed else []
        running += [pool.submit(of_subset, fixes, Path(folder)) for fixes in subsets]
        for future in running:
            if one := future.result():
                found.append(one)
                print(line(one), flush=True)
    return found


def line(one: Outcome) -> str:
    said = f"{one.status:<9}  {one.checks:>3}  {one.cases:>4}  {one.seconds:5.1f} s"
    return f"{said}  {one.name}: {' '.join(one.codes)}{'; ' if one.why else ''}{one.why}"


def table(found: list[Outcome]) -> str:
    rows = [("one fault", [o for o in found if not o.several])]
    rows += [("several faults", [o for o in found if o.several])]
    return "\n".join(
        f"{name:<14}  {sum(o.verified for o in some):>3} of {len(some):>3}  {rate(some):6.1%}"
        for name, some in rows
    )


if __name__ == "__main__":
    wanted = [a for a in sys.argv[1:] if a != "--seed"]
    print(table(outcomes(wanted, "--seed" in sys.argv)))
