"""One update: equal to plain autograd on the whole, however it is cut into micro-batches."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from tests.support import tiny_policy  # noqa: E402
from tests.support.sampling import one_in  # noqa: E402

from rlproof.space.aggregation import Scope  # noqa: E402
from rlproof.space.batch import Batch  # noqa: E402
from rlproof.space.filters import Filter  # noqa: E402
from rlproof.space.masks import Masks  # noqa: E402
from rlproof.space.mismatch import Mismatch  # noqa: E402
from rlproof.space.objective import Entropy, Objective  # noqa: E402
from rlproof.space.published import OBJECTIVES  # noqa: E402
from rlproof.train import optimizer, policy  # noqa: E402
from rlproof.train.config import TrainConfig  # noqa: E402
from rlproof.train.distributed import Ranks  # noqa: E402
from rlproof.train.prepare import Step, advantages_of, counted  # noqa: E402
from rlproof.train.rollout.batch import RolloutBatch  # noqa: E402
from rlproof.train.step import Updater  # noqa: E402

GROUP, PROMPTS, WIDTH = 4, 4, 6
ROWS = GROUP * PROMPTS


def config(micro: int | None = None, **objective: Any) -> TrainConfig:
    return TrainConfig.of({
        "run": {"folder": "unused"}, "objective": {"length": 7, **objective},
        "batch": {"prompts": PROMPTS, "group": GROUP, **({"micro": micro} if micro else {})},
        "optimizer": {"clip_norm": 0}, "sampling": {"max_tokens": WIDTH},
    })  # fmt: skip


def updater(how: TrainConfig, objective: Objective, settings: Any = None) -> Updater:
    made = policy.made(how, tiny_policy.model(settings), tiny_policy.tokenizer())
    made.model.double()
    parameters = made.trained()
    return Updater(made, objective, how, Ranks(), optimizer.made(parameters, how.optimizer))


def step(objective: Objective, seed: int = 0) -> Step:
    """Completions of unequal length, prompts of unequal length, one group without a signal."""
    draw = torch.Generator().manual_seed(seed)

    def ids(width: int) -> Any:
        return torch.randint(2, len(tiny_policy.CHARS) + 2, (ROWS, width), generator=draw)

    slots = torch.arange(WIDTH)
    lengths = torch.randint(1, WIDTH + 1, (ROWS, 1), generator=draw)
    attend = (slots < lengths).long()
    prompt_mask = (torch.arange(3) >= torch.arange(ROWS)[:, None] // GROUP % 3).long()
    mask = attend.clone()
    mask[::5, 0] = 0  # an injected token
    logps = (-2 + torch.randn(ROWS, WIDTH, generator=draw)).clamp(max=-0.1) * mask
    rollout = RolloutBatch(
        ids(3) * prompt_mask, prompt_mask, ids(WIDTH) * attend, mask, attend, logps,
        torch.arange(ROWS) % 3 > 0,
    )  # fmt: skip
    counts = counted(objective, rollout)
    noise = torch.randn(2, ROWS, WIDTH, generator=draw)
    old, ref = logps + 0.3 * noise[0], logps + 0.5 * noise[1]
    rewards = torch.rand(ROWS, generator=draw)
    rewards[:GROUP] = 0.5
    from rlproof.space.batch import Rollout

    shaping = Rollout(old, counts, ref, logps)
    table = [[float(r)] for r in rewards]
    adv, kept = advantages_of(objective, table, GROUP, counts, Ranks(), shaping)
    return Step(rollout, GROUP, rewards.double(), counts, adv, old, ref, kept)


def gradients(one: Updater) -> dict[str, Any]:
    return {n: p.grad.clone() for n, p in one.policy.trained().items()}


def plain(one: Updater, objective: Objective, data: Step) -> tuple[float, dict[str, Any]]:
    """The loss and gradients by autograd through full logits, all rows at once."""
    rows, model = data.rollout, one.policy.model
    one.optimizer.zero_grad()
    out = model(
        input_ids=rows.ids, attention_mask=rows.attention, position_ids=rows.positions
    ).logits
    logits = out[:, -WIDTH - 1 : -1] / objective.temperature
    table = torch.log_softmax(logits, -1)
    new = table.gather(-1, rows.tokens[..., None])[..., 0]
    entropy = -(table.exp() * table).sum(-1)
    batch = Batch(
        new=new, advantages=data.advantages.double(), mask=data.mask.double(),
        old=data.old.double(), ref=data.ref.double(), sampler=rows.logps.double(),
        entropy=entropy, scope=Scope(length=7.0), groups=GROUP,
        kept=None if data.kept is None else data.kept.double(),
    )  # fmt: skip
    loss, _ = objective.loss(batch)
    loss.backward()
    return float(loss.detach()), gradients(one)


def difference(first: dict[str, Any], second: dict[str, Any]) -> float:
    """The largest difference, relative to the largest gradient."""
    largest = max(float(g.abs().max()) for g in second.values())
    gap = max(float((first[n] - second[n]).abs().max()) for n in second)
    return gap / largest if largest else gap


DAPO = OBJECTIVES["dapo"].objective
BEYOND = {
    "filter": DAPO.but(filter=Filter("zero-variance")),
    "filter that counts": DAPO.but(filter=Filter("zero-variance", counted=True)),
    "filter by mean": OBJECTIVES["grpo"].objective.but(filter=Filter("mean-range", 0.3, 0.6)),
    "no truncated rows": DAPO.but(masks=Masks(truncated="dropped")),
    "no end token": DAPO.but(masks=Masks(end="dropped")),
    "weights of mean 1": DAPO.but(mismatch=Mismatch("truncate", high=2.0, normalised=True)),
    "mask by the new policy": DAPO.but(
        rejection=Mismatch(
            "mask", "sequence-mean", 0.7, 1.3, numerator="new", counted=False, normalised=True
        )
    ),
    "entropy bonus": OBJECTIVES["dapo"].objective.but(entropy=Entropy(coefficient=0.1)),
    "top entropy": OBJECTIVES["dapo"].objective.but(entropy=Entropy(top_share=0.3)),
}
ALL = {name: one.objective for name, one in OBJECTIVES.items()} | BEYOND


@pytest.mark.parametrize("name", one_in(4, ALL))
def test_every_objective_is_that_of_autograd_however_it_is_cut(name):
    objective = ALL[name]
    data = step(objective)
    whole = updater(config(), objective)
    expected_loss, expected = plain(whole, objective, data)
    cuts = (None, 8, 4) if objective.aggregation == "prompt-mean" else (None, 8, 4, 3)
    for micro in cuts:
        one = updater(config(micro), objective)
        found = one.gradient(data)
        assert found.loss == pytest.approx(expected_loss, rel=1e-6, abs=1e-9)
        assert difference(gradients(one), expected) < 1e-6


def test_the_comparison_can_fail():
    """Denominators of each micro-batch's own: the mistake that the scope is there to prevent."""
    objective = OBJECTIVES["dapo"].objective
    data = step(objective)
    one = updater(config(4), objective)
    _, expected = plain(one, objective, data)
    one._scope = lambda part: Scope(length=7.0)
    one.gradient(data)
    assert difference(gradients(one), expected) > 1e-2


def test_single_precision_is_cut_alike():
    objective = OBJECTIVES["grpo"].objective
    data, found = step(objective), []
    for micro in (None, 8, 4):
        one = updater(config(micro), objective)
        one.policy.model.float()
        one.gradient(data)
        found.append(gradients(one))
    assert difference(found[1], found[0]) < 1e-6
    assert difference(found[2], found[0]) < 1e-6


def test_tied_embeddings_and_a_temperature():
    objective = OBJECTIVES["dapo"].objective.but(temperature=0.7)
    data = step(objective)
    one = updater(config(), objective, tiny_policy.gpt2())
    _, expected = plain(one, objective, data)
    one.gradient(data)
    assert difference(gradients(one), expected) < 1e-6
