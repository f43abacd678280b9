"""The reward of broken_trainer.py with some of its faults repaired.

    python reward.py               # the two that cancel, in all four combinations
    python reward.py --put-back    # everything repaired but one
"""

import sys
from pathlib import Path
from statistics import fmean

from repairs import REPAIRS

SEEDS = range(3)
SOURCE = Path("broken_trainer.py").read_text("utf-8")


def curve(codes):
    """First and last reward, averaged over the seeds; the last is a mean of ten steps."""
    source = SOURCE
    for code in codes:
        source = source.replace(*REPAIRS[code])
    names = {"__name__": "trainer"}
    exec(compile(source, "trainer", "exec"), names)
    runs = [[step["reward"] for step in names["train"](seed=seed)[1]] for seed in SEEDS]
    return fmean(run[0] for run in runs), fmean(fmean(run[-10:]) for run in runs)


def show(text, codes):
    """One line; a crash is a result too."""
    try:
        first, last = curve(codes)
    except ZeroDivisionError as error:
        print(f"crashes       {text}: {error}")
    else:
        print(f"{first:.2f} → {last:.2f}   {text}")


if "--put-back" in sys.argv:
    show("everything repaired", REPAIRS)
    for code in REPAIRS:
        show(f"all but {code}", [other for other in REPAIRS if other != code])
else:
    show("as it is", ())
    show("eps added, so that nothing crashes (ADV004)", ["ADV004"])
    show("and the sign repaired (SUR005)", ["ADV004", "SUR005"])
    show("or the ratio repaired (SUR001)", ["ADV004", "SUR001"])
    show("or both", ["ADV004", "SUR001", "SUR005"])
