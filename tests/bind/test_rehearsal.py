"""The stage: what it samples from, what it reads off gradients, what its data are."""

import pytest

torch = pytest.importorskip("torch")

from rlproof.bind.child.load import UnavailableError  # noqa: E402
from rlproof.bind.child.rehearsal.data import Batch, Data  # noqa: E402
from rlproof.bind.child.rehearsal.objects import number  # noqa: E402
from rlproof.bind.child.rehearsal.policy import policy  # noqa: E402
from rlproof.bind.child.rehearsal.recorder import Recorder  # noqa: E402
from rlproof.bind.child.rehearsal.sampling import distribution, generate  # noqa: E402
from rlproof.bind.child.rehearsal.settings import (  # noqa: E402
    EOS,
    PROMPT,
    WORDS,
    NoStandInError,
    Settings,
    prompt_ids,
)


@pytest.fixture(autouse=True)
def _double():
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(before)


def stage(**settings):
    recorder = Recorder(Settings(**settings))
    recorder.policy = policy(recorder, "policy", trained=True)
    return recorder


def scores(*logits):
    whole = torch.full((1, WORDS), -50.0)
    whole[0, 10 : 10 + len(logits)] = torch.tensor(logits)
    return whole


def chances(settings, ids=(5,), step=0):
    return distribution(scores(2.0, 1.0, 0.0), torch.tensor([list(ids)]), step, settings)[0]


def test_settings_of_sampling_are_applied_as_documented():
    """Words 10, 11, 12 have logits 2, 1, 0; the others e^-50: each share by hand."""
    one = torch.tensor([2.0, 1.0, 0.0])
    assert torch.allclose(chances({})[10:13], one.softmax(0))
    assert torch.allclose(chances({"temperature": 0.5})[10:13], (2 * one).softmax(0))
    two = (one[:2]).softmax(0)
    assert torch.allclose(chances({"top_k": 2})[10:13], torch.tensor([*two, 0.0]))
    # 0.665 alone is below 0.7, 0.665 + 0.245 is not: two words stay
    assert torch.allclose(chances({"top_p": 0.7})[10:13], torch.tensor([*two, 0.0]))
    # word 10 was there: its logit is 2 / 2 = 1
    seen = chances({"repetition_penalty": 2.0}, ids=(10,))
    assert torch.allclose(seen[10:13], torch.tensor([1.0, 1.0, 0.0]).softmax(0))
    # 0.09 / 0.665 is below 0.2, 0.245 / 0.665 is not
    assert torch.allclose(chances({"min_p": 0.2})[10:13], torch.tensor([*two, 0.0]))


def test_the_end_waits_for_the_least_number_of_tokens():
    assert chances({"min_new_tokens": 3}, step=2)[EOS] == 0
    assert chances({"min_new_tokens": 3}, step=3)[EOS] > 0


def test_a_setting_that_is_not_known_is_refused():
    recorder = stage()
    with pytest.raises(UnavailableError, match="without `penalty_alpha`"):
        generate(recorder.policy, (torch.tensor([prompt_ids(0)]),), {"penalty_alpha": 0.6})


@pytest.mark.parametrize("heat", [1.0, 0.7, 2.5])
def test_derivatives_by_log_probs_are_read_off_those_by_logits(heat):
    """Σ w·log π at a temperature has the derivatives w: what was put in comes out."""
    recorder = stage()
    ids = torch.tensor([[*prompt_ids(k), 41, 57, 44, EOS] for k in range(3)])
    weights = torch.tensor([[0.5, -1.0, 2.0, 0.25], [1.0, 3.0, -0.5, 0.0], [0.1, 0.2, 0.3, 0.4]])
    logits = recorder.policy(ids).logits[:, PROMPT - 1 : -1] / heat
    logps = logits.log_softmax(-1).gather(-1, ids[:, PROMPT:, None])[..., 0]
    (weights * logps).sum().backward()
    got = recorder.passes[0]["gradient"][:, PROMPT:]
    assert torch.allclose(got, weights, atol=1e-6)
    assert recorder.passes[0]["touched"]


def test_columns_are_told_by_their_names_and_others_refused():
    batch = Batch(Data(stage(width="completion")), ["ids", "advantages", "response_mask"])
    assert batch["ids"].shape == (24, 21)
    assert batch["response_mask"].shape == (24, 16)
    assert set(batch["response_mask"].unique().tolist()) == {0.0, 1.0}
    assert list(batch) == ["ids", "advantages", "response_mask"]
    with pytest.raises(UnavailableError, match="stand in for `zebra`"):
        batch["zebra"]
    assert not hasattr(batch, "zebra")


def test_a_batch_that_is_walked_over_has_ids():
    assert dict(Batch(Data(stage()), ["reward"]).items()).keys() == {"reward", "ids"}


def test_a_tool_mask_keeps_the_end_of_a_completion():
    data = Data(stage(width="completion"))
    tools, whole = data.column("tool_mask"), data.column("response_mask")
    ends = whole.sum(1).long() - 1
    assert bool((tools.gather(1, ends[:, None]) == 1).all())
    assert bool((tools <= whole).all())
    assert not torch.equal(tools, whole)


def test_settings_by_name():
    here = Settings(group=4, weight=0.1)
    assert [number(n, here) for n in ("num_generations", "beta", "clip_eps")] == [4, 0.1, 0.2]
    with pytest.raises(NoStandInError, match="setting `zebra`"):
        number("zebra", here)
