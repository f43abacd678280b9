"""Column names become metrics with their units, and no name is taken for two."""

from rlproof.watch.vocabulary import columns, load, recognise


def test_plain_names_mean_one_thing_each():
    names = [name for metric in load().metrics for name in metric.plain]
    assert len(names) == len(set(names))


def test_a_verl_log_is_recognised_and_read():
    keys = ["critic/score/mean", "actor/pg_clipfrac", "actor/entropy", "training/global_step"]
    assert recognise(keys) == "verl"
    found = columns(keys)
    assert {m: r.key for m, r in found.items()} == {
        "reward-mean": "critic/score/mean",
        "clip-fraction": "actor/pg_clipfrac",
        "entropy": "actor/entropy",
    }
    assert found["entropy"].unit == "nats"
    assert "cispo" in found["clip-fraction"].differs


def test_names_of_ones_own_loop():
    found = columns(["step", "reward", "adv_std", "zero_std_frac", "loss"])
    assert set(found) == {"reward-mean", "advantage-std", "zero-variance-groups", "loss"}
    assert {r.framework for r in found.values()} == {""}


def test_one_common_name_makes_no_framework():
    assert recognise(["reward", "entropy", "kl"]) == ""


def test_trl_s_divergence_is_k3():
    keys = [
        "reward",
        "kl",
        "frac_reward_zero_std",
        "completions/mean_length",
        "clip_ratio/low_mean",
    ]
    found = columns(keys, "TRL")
    assert found["kl-to-reference"].estimator == "k3"
    assert found["zero-variance-groups"].differs


def test_a_framework_s_own_key_goes_before_a_plain_one():
    keys = ["critic/score/mean", "reward", "actor/entropy"]
    assert columns(keys, "verl")["reward-mean"].key == "critic/score/mean"
