"""Loss and gradients of a language model's head: the fused loss against others, from one run.

    python benchmarks/fused_loss.py [--rounds 5] [--threads 1] [--shape 2048 512 32000]
                                    [--only NAME ...] [--json FILE]

Each variant lives in a process of its own, at the same threads, and is asked for one forward and
backward after another, in turns with the others: a busy machine slows all of them. Speeds are
medians of the ratios of one round, of wall time and of processor time: with one thread the second
does not count what other processes take. Memory is VmHWM during one call, less the resident memory
before it: it holds the gradients of hidden states and matrix too. `peak` is the rate of the three
matrix products alone, at the sizes of a chunk, as torch multiplies; `onednn` is that of oneDNN's
products, which the fused loss takes where they are faster. What can't run is left out.

All variants are given the same inputs and must find the same loss and gradient: 8 rows of tokens,
GRPO with a token mean, a clip of 0.2 and k3 at 0.04. Those called `padded` have 40 % of padding,
those called `clipped` 40 % of tokens whose gradient the clip removes, and no divergence.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import math
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROWS, BETA, CLIP = 8, 0.04, 0.2
NAMES = (
    "fused", "naive", "trl", "liger", "two passes", "plain", "peak", "onednn",
    "fused padded", "naive padded", "fused clipped", "naive clipped",
)  # fmt: skip


def memory(field: str) -> float:
    """A line of /proc/self/status in MB."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1]) / 1024
    raise LookupError(field)


def reset_peak() -> None:
    """Gives back what is free, then sets VmHWM to what is resident now."""
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")


class Inputs:
    """The same tensors in every process."""

    def __init__(self, name: str, shape: tuple[int, int, int]) -> None:
        import torch

        count, width, vocabulary = shape
        self.slots = count // ROWS
        make = torch.Generator().manual_seed(0)
        self.hidden = torch.randn(ROWS, self.slots, width, generator=make).requires_grad_()
        self.weight = (torch.randn(vocabulary, width, generator=make) * 0.05).requires_grad_()
        self.tokens = torch.randint(vocabulary, (ROWS, self.slots), generator=make)
        self.advantages = torch.randn(ROWS, generator=make)
        noise = torch.randn(3, ROWS, self.slots, generator=make) * 0.02
        self.mask = torch.ones(ROWS, self.slots)
        self.beta = BETA
        with torch.no_grad():
            rows = [self.logps(h, t) for h, t in zip(self.hidden, self.tokens, strict=True)]
            new = torch.stack(rows)
        self.old, self.ref = new + noise[0], new + noise[1]
        if name.endswith("padded"):
            self.mask[:, round(0.6 * self.slots) :] = 0
        if name.endswith("clipped"):
            self.beta = 0.0
            far = torch.arange(self.slots) >= round(0.6 * self.slots)
            self.old = torch.where(far, new - self.advantages.sign()[:, None], self.old)

    def logps(self, hidden: Any, tokens: Any) -> Any:
        """By full logits."""
        import torch

        logits = torch.nn.functional.linear(hidden, self.weight)
        return logits.log_softmax(-1).gather(-1, tokens[..., None])[..., 0]

    def loss_of(self, new: Any) -> Any:
        """GRPO as people write it."""
        ratio, adv = (new - self.old).exp(), self.advantages[:, None]
        per_token = -(ratio * adv).minimum(ratio.clamp(1 - CLIP, 1 + CLIP) * adv)
        if self.beta:
            gap = self.ref - new
            per_token = per_token + self.beta * (gap.exp() - gap - 1)
        return (per_token * self.mask).sum() / self.mask.sum()


def fused(made: Inputs, form: str = "token") -> Callable[[], Any]:
    import torch

    from rlproof.space.objective import Divergence, Objective
    from rlproof.train.fused import FusedBatch, fused_loss, plain_loss
    from rlproof.train.fused import head as of_head

    kl = Divergence("loss", coefficient=made.beta) if made.beta else Divergence()
    objective = Objective(aggregation="token-mean", divergence=kl)
    batch = FusedBatch(made.mask, made.advantages, made.old, made.ref)
    if form == "two":  # the same objective, as if it were not token-local
        of_head.token_local = lambda *_: False
    if form == "plain":
        head = lambda rows: torch.nn.functional.linear(rows, made.weight)  # noqa: E731
        return lambda: plain_loss(head, made.hidden, made.tokens, batch, objective).loss
    return lambda: fused_loss(made.hidden, made.weight, made.tokens, batch, objective).loss


def trl(made: Inputs) -> Callable[[], Any]:
    import torch
    from trl.trainer.utils import selective_log_softmax

    def loss() -> Any:
        logits = torch.nn.functional.linear(made.hidden, made.weight)
        return made.loss_of(selective_log_softmax(logits, made.tokens))

    return loss


def liger(made: Inputs) -> Callable[[], Any]:
    from liger_kernel.chunked_loss import LigerFusedLinearGRPOLoss

    how = LigerFusedLinearGRPOLoss(
        beta=made.beta, epsilon_low=CLIP, epsilon_high=CLIP, loss_type="bnpo", use_ref_model=True
    )

    def loss() -> Any:
        return how(
            made.hidden, made.weight, made.tokens, made.mask, made.advantages,
            ref_per_token_logps=made.ref, old_per_token_logps=made.old,
        )[0]  # fmt: skip

    return loss


def peak(shape: tuple[int, int, int]) -> Callable[[], None]:
    """The three products of a step, at 256 tokens each, with nothing between them."""
    import torch

    count, width, vocabulary = shape
    rows, matrix = torch.randn(256, width), torch.randn(vocabulary, width)
    logits, total = torch.empty(256, vocabulary), torch.zeros(vocabulary, width)
    back = torch.empty(256, width)

    def once() -> None:
        for _ in range(count // 256):
            torch.mm(rows, matrix.t(), out=logits)
            torch.mm(logits, matrix, out=back)
            total.addmm_(logits.t(), rows, alpha=1e-6)

    return once


def onednn(shape: tuple[int, int, int]) -> Callable[[], None]:
    """The same three products as the package has them made on processors of some kind."""
    import torch

    from rlproof.train import products

    if not products.faster():
        raise SystemExit("on this processor torch's own products are used")
    count, width, vocabulary = shape
    rows, matrix = torch.randn(256, width), torch.randn(vocabulary, width)
    logits, total = torch.empty(256, vocabulary), torch.zeros(vocabulary, width)

    def once() -> None:
        for _ in range(count // 256):
            products.times_into(logits, rows, matrix)
            products.times(logits, matrix.t())
            products.add_outer(total, logits, rows, False)

    return once


ALONE = {"peak": peak, "onednn": onednn}


def worker(name: str, threads: int, shape: tuple[int, int, int]) -> None:
    """Answers each line of standard input with one forward and backward."""
    import torch

    torch.set_num_threads(threads)
    if name in ALONE:
        run, made = ALONE[name](shape), None
    else:
        made = Inputs(name, shape)
        kind = name.split()[0]
        makers: dict[str, Callable[[], Callable[[], Any]]] = {
            "fused": lambda: fused(made),
            "two": lambda: fused(made, "two"),
            "plain": lambda: fused(made, "plain"),
            "naive": lambda: lambda: made.loss_of(made.logps(made.hidden, made.tokens)),
            "trl": lambda: trl(made),
            "liger": lambda: liger(made),
        }
        run = makers[kind]()
    print("ready", flush=True)
    for _ in sys.stdin:
        found = {}
        if made:
            made.hidden.grad = made.weight.grad = None
        reset_peak()
        before, start, cpu = memory("VmRSS"), time.perf_counter(), time.process_time()
        loss = run()
        if made:
            loss.backward()
        found |= {"seconds": time.perf_counter() - start, "cpu": time.process_time() - cpu}
        found["megabytes"] = memory("VmHWM") - before
        if made:
            found["loss"] = loss.item()
            found["hidden"] = made.hidden.grad.norm().item()
            found["weight"] = made.weight.grad.norm().item()
        print(json.dumps(found), flush=True)


class Variant:
    """A worker process, or the reason why there is none."""

    def __init__(self, name: str, options: argparse.Namespace) -> None:
        command = [sys.executable, __file__, "--worker", name, "--threads", str(options.threads)]
        command += ["--shape", *map(str, options.shape)]
        threads = {"OMP_NUM_THREADS": str(options.threads)}
        self.name, self.found = name, []
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            text=True, env=os.environ | threads,
        )  # fmt: skip
        self.ready = self.process.stdout.readline().strip() == "ready"

    def once(self) -> dict[str, float]:
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def close(self) -> None:
        self.process.stdin.close()
        self.process.wait()


def median_ratio(over: list[dict[str, float]], under: list[dict[str, float]], key: str) -> float:
    """NaN where one of them did not run."""
    pairs = [a[key] / b[key] for a, b in zip(over, under, strict=False)]
    return statistics.median(pairs) if pairs else math.nan


def report(variants: list[Variant], shape: tuple[int, int, int]) -> None:
    found = {one.name: one.found for one in variants}
    print(f"{'variant':<14} wall s  ×naive  cpu s  ×naive  MB    ×naive  GFLOP/s  loss        |dW|")
    for name, runs in found.items():
        twin = "naive clipped" if "clipped" in name else "naive padded" if "padded" in name else ""
        base = found.get(twin or "naive", [])
        line, clock = f"{name:<14}", 0.0
        for key in ("seconds", "cpu"):
            clock = statistics.median(run[key] for run in runs)
            line += f" {clock:6.2f}  {median_ratio(base, runs, key):6.2f}"
        line += f"  {statistics.median(run['megabytes'] for run in runs):4.0f}"
        line += f"  {median_ratio(runs, base, 'megabytes'):6.3f}"
        line += f"  {6 * shape[0] * shape[1] * shape[2] / clock / 1e9:7.1f}"
        if "loss" in runs[0]:
            line += f"  {runs[0]['loss']:.8f}  {runs[0]['weight']:.6f}"
        print(line)
    for key in ("seconds", "cpu"):
        if "fused" in found and "liger" in found:
            speed = median_ratio(found["liger"], found["fused"], key)
            share = median_ratio(found["fused"], found["liger"], "megabytes")
            print(f"fused / liger, {key}: {speed:.2f} times the speed, {share:.3f} of the memory")
        for name, whose in (("peak", "torch's"), ("onednn", "oneDNN's")):
            if "fused" in found and name in found:
                share = median_ratio(found[name], found["fused"], key)
                print(f"fused, {key}: {share:.1%} of the rate of {whose} matrix products alone")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--shape", type=int, nargs=3, default=[2048, 512, 32000])
    parser.add_argument("--only", nargs="*", default=NAMES)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--worker")
    options = parser.parse_args()
    if options.worker:
        worker(options.worker, options.threads, tuple(options.shape))
        return
    variants = []
    for name in options.only:
        one = Variant(name, options)
        if one.ready:
            variants.append(one)
        else:
            print(f"{name} is left out: {one.process.stderr.read().strip().splitlines()[-1]}")
    for one in variants:
        one.once()  # caches, compilation, first page faults
    for _ in range(options.rounds):
        for one in variants:
            one.found.append(one.once())
    report(variants, tuple(options.shape))
    if options.json:
        options.json.write_text(json.dumps({one.name: one.found for one in variants}, indent=1))
    for one in variants:
        one.close()


if __name__ == "__main__":
    main()
