"""Feeds runs to one rival and prints what it says. Run by the rival's own interpreter.

    RIVAL_PYTHON rivals_feed.py NAME < paths

Each path is a file of JSON lines: the first has the settings of the run, each other one a step.
Prints, as one JSON list, for each run the seconds and its alarms [severity, name, all text].
Knows nothing of rlproof. Each rival is fed by its own recorder and by its own field names.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import sys
import tempfile
import time

LEVELS = {"info": 0, "warn": 1, "warning": 1, "critical": 2}


def rldoctor(settings, steps, folder):
    """`diagnose` of a log with TRL's names, and the settings as its RunConfig."""
    from rl_doctor import diagnose, load_run

    path = os.path.join(folder, "log.jsonl")
    with open(path, "w") as file:
        for s in steps:
            row = {
                "step": s["step"], "reward": s["reward"], "reward_std": s["reward_std"],
                "reward_min": min(s["rewards"]), "reward_max": max(s["rewards"]),
                "frac_reward_zero_std": s["zero_std_frac"], "advantage/mean": s["adv_mean"],
                "advantage/std": s["adv_std"], "group_size": settings["group_size"],
                "learning_rate": settings["lr"], "completions/mean_length": s["length"],
                "completions/max_length": s["length_max"],
            }  # fmt: skip
            names = {"entropy": "entropy", "kl": "kl", "clip_frac": "clip_ratio/region_mean",
                     "grad_norm": "grad_norm", "loss": "policy_loss"}  # fmt: skip
            row |= {new: s[old] for old, new in names.items() if old in s}
            file.write(json.dumps(row) + "\n")
    run = load_run(path)
    run.config = dataclasses.replace(
        run.config, algorithm="grpo", group_size=settings["group_size"],
        batch_size=settings["rows"], kl_coef=settings["beta"], clip_eps_low=settings["clip"],
        clip_eps_high=settings["clip"], learning_rate=settings["lr"],
        max_response_length=settings["max_len"],
    )  # fmt: skip
    for f in diagnose(run).problems:
        text = " ".join([f.title, f.summary, *map(str, f.evidence), *map(str, f.prescription)])
        yield f.severity.name.lower(), f.detector, text


def rlprobe(settings, steps, folder):
    """Its recorder, with all its scalars and every sample, then `diagnose`."""
    from rlprobe.doctor import diagnose
    from rlprobe.recorder import Recorder

    run = os.path.join(folder, "run")
    recorder = Recorder(
        run, algorithm="grpo", trainer_config=settings, capture_env=False, install_handlers=False
    )
    for s in steps:
        names = {"entropy": "entropy_mean", "kl": "kl_mean", "clip_frac": "clip_fraction",
                 "ratio": "ratio_mean", "grad_norm": "grad_norm", "loss": "loss",
                 "logp": "logprob_mean"}  # fmt: skip
        recorder.log_step(
            s["step"], reward_mean=s["reward"], reward_std=s["reward_std"],
            reward_min=min(s["rewards"]), reward_max=max(s["rewards"]), adv_mean=s["adv_mean"],
            adv_std=s["adv_std"], adv_zero_frac=s["adv_zero"],
            group_reward_std_mean=s["group_std"], zero_variance_group_frac=s["zero_std_frac"],
            lr=settings["lr"], completion_len_mean=s["length"],
            completion_len_max=s["length_max"],
            **{new: s[old] for old, new in names.items() if old in s},
        )  # fmt: skip
        recorder.log_samples(
            s["step"],
            [
                {"group_id": str(k // settings["group_size"]),
                 "prompt_id": str(k // settings["group_size"]), "reward_total": reward,
                 "advantage": adv, "completion_len": length}
                for k, (reward, adv, length) in enumerate(
                    zip(s["rewards"], s["advantages"], s["lengths"], strict=True)
                )
            ],
            select=False,
        )  # fmt: skip
    if settings["crash"]:
        recorder.log_event("crash", message=settings["crash"])
    recorder.close()
    assert recorder.dropped == 0
    for f in diagnose(run):
        text = " ".join([f.signature_id, f.explanation, *f.suggested_actions])
        yield f.severity, f.signature_id, text


def rlwatch(settings, steps, folder):
    """`attach` for a loop of one's own, and `log_step` with all it takes; what it would send."""
    import rlwatch as library

    monitor = library.attach(
        framework="manual", storage={"log_dir": folder},
        kl_explosion={"clip_region": settings["clip"]},
    )  # fmt: skip
    found = []
    for s in steps:
        names = {"entropy": "entropy", "kl": "kl_divergence", "clip_frac": "clip_fraction",
                 "grad_norm": "grad_norm", "loss": "loss"}  # fmt: skip
        import numpy as np

        found += monitor.log_step(
            s["step"], reward_mean=s["reward"], reward_std=s["reward_std"],
            rewards=np.array(s["rewards"]), advantage_std=s["adv_std"],
            learning_rate=settings["lr"], **{new: s[old] for old, new in names.items() if old in s},
        )  # fmt: skip
    monitor.stop()
    for a in found:
        yield a.severity, a.detector, f"{a.message} {a.recommendation}"


def main() -> None:
    feed = {"rldoctor": rldoctor, "rlprobe": rlprobe, "rlwatch": rlwatch}[sys.argv[1]]
    results = []
    for number, path in enumerate(sys.stdin.read().split("\n")):
        if not path:
            continue
        with open(path) as file:
            settings, *steps = map(json.loads, file)
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(sys.stderr):
            if number == 0:  # imports and caches are not what is timed
                list(feed(settings, steps, folder))
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(sys.stderr):
            start = time.perf_counter()
            alarms = list(feed(settings, steps, folder))
            seconds = time.perf_counter() - start
        levelled = [[LEVELS.get(level, 0), name, text] for level, name, text in alarms]
        results.append({"seconds": seconds, "alarms": levelled})
    print(json.dumps(results))


if __name__ == "__main__":
    main()
