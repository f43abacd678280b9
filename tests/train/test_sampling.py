"""What may be drawn from, and what is refused."""

import pytest

from rlproof.errors import ConfigError
from rlproof.space.objective import Objective
from rlproof.space.published import OBJECTIVES
from rlproof.train.sampling import Sampling


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ({"temperature": -1.0}, "temperature is -1.0"),
        ({"temperature": float("nan")}, "temperature is nan"),
        ({"temperature": 1e-9}, "expected 0 (greedy"),
        ({"temperature": "1"}, "temperature is '1'"),
        ({"temperature": True}, "temperature is True"),
        ({"top_k": -1}, "top_k is -1"),
        ({"top_k": 2.0}, "top_k is 2.0"),
        ({"top_p": 0.0}, "top_p is 0.0"),
        ({"top_p": 1.5}, "top_p is 1.5"),
        ({"min_p": 1.0}, "min_p is 1.0"),
        ({"max_tokens": 0}, "max_tokens is 0"),
        ({"max_tokens": None}, "max_tokens is None"),
        ({"seed": -1}, "seed is -1"),
        ({"allow_mismatch": "yes"}, "allow_mismatch is 'yes'"),
    ],
)
def test_wrong_values_are_named(setting, said):
    with pytest.raises(ConfigError) as error:
        Sampling(**setting)
    assert said in str(error.value)
    assert "expected" in str(error.value)


def test_the_objective_gets_the_temperature_of_sampling():
    assert Sampling(temperature=0.7).scored_by(Objective()).temperature == 0.7
    assert Sampling(temperature=1).scored_by(Objective()) == Objective()
    with pytest.raises(ConfigError, match=r"temperature 0.7, the objective 0.9"):
        Sampling(temperature=0.7).scored_by(Objective(temperature=0.9))


def test_greedy_is_refused_for_training():
    with pytest.raises(ConfigError, match="temperature is 0: greedy"):
        Sampling(temperature=0).scored_by(Objective())


@pytest.mark.parametrize("cut", [{"top_k": 20}, {"top_p": 0.9}, {"min_p": 0.05}])
def test_a_cut_needs_a_correction(cut):
    with pytest.raises(ConfigError, match="SMP001") as error:
        Sampling(**cut).scored_by(Objective())
    assert next(iter(cut)) in str(error.value)
    corrected = OBJECTIVES["grpo-tis"].objective
    assert Sampling(**cut).scored_by(corrected) == corrected
    rejecting = Objective(rejection=corrected.mismatch)
    assert Sampling(**cut).scored_by(rejecting) == rejecting
    assert Sampling(**cut, allow_mismatch=True).scored_by(Objective()) == Objective()


def test_only_the_whole_distribution_is_exact():
    assert Sampling(temperature=0.7).exact
    assert Sampling(top_p=1, top_k=0, min_p=0).exact
    assert not Sampling(top_p=0.9).exact
    assert not Sampling(temperature=0).exact


def test_streams_of_one_seed_differ_and_repeat():
    torch = pytest.importorskip("torch")
    draws = [
        torch.rand(4, generator=Sampling(seed=seed).generator(stream)).tolist()
        for seed, stream in [(0, 0), (0, 1), (1, 0), (0, 0)]
    ]
    assert draws[0] == draws[3]
    assert len({tuple(draw) for draw in draws}) == 3
