"""`python -m rlproof.integrations.openrlhf`, in the place of OpenRLHF's `train_ppo_ray`."""

from __future__ import annotations

import functools
from typing import Any

from rlproof.integrations.openrlhf.processes import runtime_environment


def main() -> None:
    """Run OpenRLHF's `train_ppo_ray` with every process of Ray set up to record and log."""
    import runpy

    import ray

    init = ray.init

    @functools.wraps(init)
    def init_with_hook(*args: Any, runtime_env: Any = None, **kwargs: Any) -> Any:
        return init(*args, runtime_env=runtime_environment(runtime_env or {}), **kwargs)

    ray.init = init_with_hook
    runpy.run_module("openrlhf.cli.train_ppo_ray", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
