"""Shows losses to polgrad, or logs to rldoctor. Run by an interpreter that has it.

    PYTHON feeds.py NAME < requests

Requests are one JSON list; printed is a JSON list with what the tool says to each: the
configurations that a loss conforms to, or the problems of a log. Knows nothing of rlproof.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import sys
from itertools import product

CLIPS = ((0.2, 0.2), (0.2, 0.28))
"""Ranges that configurations are tried with; a loss that takes its range gets the same."""


def configurations():
    """polgrad's registered losses, and each with every aggregation; none needs a KL."""
    from polgrad import ALGORITHMS, Aggregation, ClipConfig

    for (name, spec), aggregation, (low, high) in product(ALGORITHMS.items(), Aggregation, CLIPS):
        loss = dataclasses.replace(
            spec.loss, kl=None, is_correction=None, aggregation=aggregation,
            norm_len=8 if aggregation is Aggregation.TOKEN_SUM_NORM else None,
        )  # fmt: skip
        if loss.clip is not None:
            fields = {f.name for f in dataclasses.fields(ClipConfig)}
            assert {"low", "high"} <= fields or {"eps_low", "eps_high"} <= fields, fields
            prefix = "eps_" if "eps_low" in fields else ""
            loss = dataclasses.replace(
                loss, clip=dataclasses.replace(
                    loss.clip, **{f"{prefix}low": low, f"{prefix}high": high})
            )  # fmt: skip
        yield f"{name} {aggregation.value} {low} {high}", loss, (low, high)


def conforming(request):
    """The configurations that a loss agrees with, value and gradient, to 1e-5.

    Advantages are given to rows or to tokens, the mask as numbers or as truth values: whatever the
    loss can take. That it raises is no agreement.
    """
    from polgrad.testing import assert_conforms

    space = {"__name__": "script"}
    exec(compile(request["text"], "script.py", "exec"), space)
    function, slots = space[request["function"]], request["slots"]

    def adapted(clip, wide, whole):
        def loss(*, logprobs, old_logprobs, advantages, response_mask):
            given = {
                "new log-probs": logprobs, "old log-probs": old_logprobs,
                "reference log-probs": logprobs.detach(),
                "advantages": advantages[:, None].expand_as(logprobs) if wide else advantages,
                "mask": response_mask if whole else response_mask.to(logprobs.dtype),
                "clip range": clip[0], "lower clip range": clip[0], "upper clip range": clip[1],
                "divergence coefficient": 0.0, "constant normaliser": 8, "dual-clip cap": 1e9,
            }  # fmt: skip
            call = {n: given[s] for n, s in slots.items() if s in given}
            came = function(**call)
            return came[0] if isinstance(came, tuple) else came

        return loss

    for (name, config, clip), wide, whole in product(
        configurations(), (False, True), (False, True)
    ):
        with contextlib.suppress(Exception), contextlib.redirect_stdout(sys.stderr):
            assert_conforms(
                adapted(clip, wide, whole), config, n_cases=8, shapes=((4, 8),),
                loss_rtol=1e-5, grad_rtol=1e-5,
            )  # fmt: skip
            yield f"{name} {wide} {whole}"


def problems(request):
    """What rldoctor finds in a log."""
    from rl_doctor import diagnose, load_run

    try:
        with contextlib.redirect_stdout(sys.stderr):
            run = load_run(request["path"])
            found = diagnose(run).problems
    except Exception as error:
        print(repr(error)[:200], file=sys.stderr)
        return
    for one in found:
        if one.severity.name.lower() != "info":
            yield one.detector


if __name__ == "__main__":
    ask = {"polgrad": conforming, "rldoctor": problems}[sys.argv[1]]
    print(json.dumps([list(ask(request)) for request in json.load(sys.stdin)]))
