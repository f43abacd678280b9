"""Commands that start several processes on CPU, and the run they train."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.support import tiny_policy

ROOT = Path(__file__).parents[2]
TORCHRUN = ("-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2")
LAUNCH = ("-m", "accelerate.commands.launch", "--num_machines", "1", "--mixed_precision", "no",
          "--dynamo_backend", "no")  # fmt: skip
DDP = (*LAUNCH, "--multi_gpu", "--num_processes", "2", "--main_process_port", "0")
FSDP = (*LAUNCH, "--use_fsdp", "--num_processes", "2", "--main_process_port", "0")
FSDP2 = (*FSDP, "--fsdp_version", "2")


def tried(*args: str, cwd: Path = ROOT, **environment: str) -> subprocess.CompletedProcess[str]:
    """A command of Python's, to its end."""
    return subprocess.run(
        [sys.executable, *args], cwd=cwd, capture_output=True, text=True, timeout=300,
        env={**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1",
             "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)]), **environment},
    )  # fmt: skip


def launched(*args: str, cwd: Path = ROOT) -> str:
    """What `args` print, run as several processes."""
    found = tried(*args, cwd=cwd)
    assert found.returncode == 0, found.stderr
    return found.stdout


def prepared(folder: Path, more: str = "") -> Path:
    """A run of four steps of two updates, with a saved model and a reference; its run.toml."""
    tiny_policy.tokenizer().save_pretrained(folder / "start")
    tiny_policy.model(tiny_policy.llama(len(tiny_policy.CHARS) + 3)).save_pretrained(
        folder / "start"
    )
    (folder / "prompts.jsonl").write_text("\n".join(map(json.dumps, tiny_policy.PROMPTS)))
    path = folder / "run.toml"
    path.write_text(
        '[run]\nfolder = "out"\nsteps = 4\n[model]\npath = "start"\n'
        '[data]\npath = "prompts.jsonl"\n'
        '[rewards]\nfunctions = ["tests.support.dying:share_of_a"]\n'
        '[objective]\nrecipe = "grpo"\ndivergence = { coefficient = 0.04 }\n'
        "[sampling]\nmax_tokens = 4\n"
        "[batch]\nprompts = 4\ngroup = 4\nminibatches = 2\nmicro = 2\n[optimizer]\nlr = 0.01\n"
        "[record]\nevery = 1\ncheck_first_step = true\n[checkpoint]\nevery = 1\nexport = true\n"
        f"{more}"
    )
    return path
