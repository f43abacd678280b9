"""The peak of memory, measured in a process of its own."""

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")

SCRIPT = """
import ctypes, pathlib, sys, torch
from rlproof.space.objective import Objective
from rlproof.train.fused import FusedBatch, fused_loss, plain_loss
torch.set_num_threads(1)
COUNT, WIDTH, WORDS = 2048, 16, 16000

def memory(field):
    lines = pathlib.Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(field))

hidden = torch.randn(8, COUNT // 8, WIDTH, requires_grad=True)
weight = torch.randn(WORDS, WIDTH, requires_grad=True)
tokens = torch.randint(WORDS, (8, COUNT // 8))
batch = FusedBatch(torch.ones(8, COUNT // 8), torch.randn(8))
def once():
    if sys.argv[1] == "fused":
        return fused_loss(hidden, weight, tokens, batch, Objective(), chunk_rows=256).loss
    return plain_loss(lambda rows: rows @ weight.T, hidden, tokens, batch, Objective()).loss
small = FusedBatch(torch.zeros(8, COUNT // 8), batch.advantages)
fused_loss(hidden, weight, tokens, small, Objective()).loss.backward()  # loads what is lazy
ctypes.CDLL(None).malloc_trim(0)
pathlib.Path("/proc/self/clear_refs").write_text("5")
before = memory("VmRSS")
once().backward()
print(memory("VmHWM") - before)
"""


def megabytes(form):
    found = subprocess.run(
        [sys.executable, "-c", SCRIPT, form], capture_output=True, text=True, timeout=120
    )
    assert found.returncode == 0, found.stderr
    return float(found.stdout)


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="needs Linux's /proc")
def test_the_logits_are_never_held():
    """All logits are 2,048·16,000·4 bytes = 125 MB, the buffer of 256 rows 16 MB.

    Half of the logits is room for what a library allocates; through autograd they are held.
    """
    assert megabytes("fused") < 125 / 2
    assert megabytes("plain") > 2 * 125
