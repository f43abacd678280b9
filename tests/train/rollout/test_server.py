"""Sampling from a server: a real one over HTTP, which does what servers do."""

import gc
import threading
import time

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from tests.support.lm_server import serving  # noqa: E402
from tests.support.tiny_lm import VOCABULARY, tiny_lm, trained_logps  # noqa: E402

from rlproof.errors import ConfigError, RolloutError  # noqa: E402
from rlproof.train.rollout.push import VllmReload  # noqa: E402
from rlproof.train.rollout.server import ServerEngine  # noqa: E402
from rlproof.train.sampling import Sampling  # noqa: E402

PROMPTS = [[5, 6, 7]] * 4 + [[9] * 6, [1]]
EOS = list(range(30))


@pytest.fixture(scope="module")
def model():
    return tiny_lm()


@pytest.fixture
def server(model):
    with serving(model) as served:
        yield served


def engine(server, sampling=None, **settings):
    defaults = {"eos": EOS, "pad": 0, "tries": 3, "wait": 0.01, "timeout": 20.0}
    how = sampling or Sampling(max_tokens=6)
    return ServerEngine(server.url, "tiny", how, **{**defaults, **settings})


def test_ids_and_log_probs_are_the_servers(server, model):
    """The server's softmax and the training forward differ by rounding alone: 1e-5 nats."""
    batch = engine(server).generate(PROMPTS)
    assert batch.prompts[3, -3:].tolist() == [5, 6, 7]
    assert ((trained_logps(model, batch) - batch.logps) * batch.mask).abs().max() <= 1e-5
    assert batch.finished.tolist() == [row[-1] in EOS for row in batch.completions()]
    assert batch.version == 0
    assert len({tuple(row) for row in batch.completions()[:4]}) > 1  # seeds of one group differ


def test_what_is_asked(server):
    engine(server, workers=1).generate(PROMPTS, limits=[1, 2, 3, 4, 5, 99])
    assert [a["prompt"] for a in server.asked] == PROMPTS
    assert [a["max_tokens"] for a in server.asked] == [1, 2, 3, 4, 5, 6]
    assert len({a["seed"] for a in server.asked}) == 6
    for asked in server.asked:
        assert asked["stop_token_ids"] == EOS
        assert (asked["top_p"], asked["top_k"], asked["repetition_penalty"]) == (1.0, 0, 1.0)


def test_fields_can_be_set_and_left_out(server):
    engine(server, extra={"top_k": None, "priority": 3}).generate([[5]])
    assert "top_k" not in server.asked[0]
    assert server.asked[0]["priority"] == 3


def test_a_resumed_run_asks_with_the_same_seeds(server):
    first = engine(server)
    first.generate(PROMPTS)
    state = first.state()
    again = engine(server)
    again.restore(state)
    assert first.generate(PROMPTS).completions() == again.generate(PROMPTS).completions()


def test_as_many_requests_run_at_once_as_there_are_workers(server):
    """Each answer waits for three others: fewer than four at once would break the barrier."""
    four = threading.Barrier(4, timeout=60)

    def spoil(answer):
        four.wait()
        return answer

    server.spoil = spoil
    engine(server, workers=4).generate([[5]] * 24)
    assert server.most == 4


@pytest.mark.parametrize("status", [500, 503, 429])
def test_it_tries_again(server, status):
    server.statuses = [status, status]
    assert engine(server).generate([[5]]).tokens.shape[0] == 1
    assert len(server.asked) == 3


def test_after_the_last_try_there_is_one_error(server):
    server.statuses = [500] * 99
    with pytest.raises(RolloutError, match=r"in 3 tries .*status 500.*out of order"):
        engine(server).generate(PROMPTS)


def test_a_refusal_is_shown_at_once(server):
    server.statuses = [400]
    with pytest.raises(RolloutError, match=r"status 400.*out of order"):
        engine(server).generate([[5]])
    assert len(server.asked) == 1


@pytest.mark.parametrize(
    ("wire", "said"),
    [
        ("slow", "nothing complete within 0.5 s"),
        ("trickle", "nothing complete within 0.5 s"),
        ("cut", "IncompleteRead"),
        ("not json", "not JSON"),
    ],
)
def test_a_broken_connection_is_told_in_time(server, wire, said):
    server.wire = wire
    start = time.monotonic()
    with pytest.raises(RolloutError, match=said):
        engine(server, timeout=0.5, tries=2).generate([[5], [6]])
    assert time.monotonic() - start < 10  # two tries of half a second each, on a busy machine


def test_a_reset_while_reading_leaves_no_socket_open(server):
    """An open one would be a warning, and so a failure, when it is collected."""
    server.wire = "reset"
    with pytest.raises(RolloutError, match="in 2 tries"):
        engine(server, tries=2).generate([[5], [6]])
    gc.collect()


def test_a_server_that_is_gone(model):
    with serving(model) as served:
        pass
    with pytest.raises(RolloutError, match=r"in 3 tries .*refused.*is the server running"):
        engine(served).generate(PROMPTS)


def test_a_failure_calls_off_the_rest(server):
    """Row 0 would take 10 s and rows 2 and 3 wait for a worker, when row 1 is refused."""

    def spoil(answer):
        prompt = answer["choices"][0]["prompt_token_ids"]
        time.sleep(10 if prompt == [5] else 0)
        return {} if prompt == [1] else answer

    server.spoil = spoil
    before = set(threading.enumerate())
    start = time.monotonic()
    with pytest.raises(RolloutError, match="row 1"):
        engine(server, workers=2).generate([[5], [1], [5], [5]])
    for thread in set(threading.enumerate()) - before:
        if thread.name.startswith("ThreadPool"):
            thread.join(9)
    assert time.monotonic() - start < 9
    assert len([a for a in server.asked if a["prompt"] == [5]]) <= 2


def choice(**changes):
    def spoil(answer):
        answer["choices"][0].update(changes)
        return answer

    return spoil


def logprobs(change):
    def spoil(answer):
        answer["choices"][0]["logprobs"]["token_logprobs"] = change(
            answer["choices"][0]["logprobs"]["token_logprobs"]
        )
        return answer

    return spoil


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda answer: {}, "expected a completion with one choice"),
        (lambda answer: {"choices": answer["choices"] * 2}, "one choice"),
        (choice(token_ids=None, logprobs={"tokens": ["a"]}), "text without token ids"),
        (choice(token_ids=[]), r"the ids \[\]"),
        (choice(token_ids=[31, "32"]), "the ids"),
        (choice(token_ids=[VOCABULARY]), "of the vocabulary"),
        (choice(prompt_token_ids=[0, 5]), "completion of another prompt"),
        (choice(logprobs=None), "0 log-probs"),
        (logprobs(lambda x: x[:-1]), "one log-prob for each id"),
        (logprobs(lambda x: [float("nan")] * len(x)), "the log-prob nan at token 0"),
        (logprobs(lambda x: [-9999.0] * len(x)), "the log-prob -9999.0"),
        (logprobs(lambda x: [0.5] * len(x)), "the log-prob 0.5"),
        (logprobs(lambda x: [None] * len(x)), "the log-prob None"),
        (choice(token_ids=[31] * 9, logprobs={"token_logprobs": [-1.0] * 9}), "at most 6"),
        (choice(token_ids=[2, 31], logprobs={"token_logprobs": [-1.0] * 2}), "after an end token"),
        (
            choice(token_ids=[31], logprobs={"token_logprobs": [-1.0]}, finish_reason="stop"),
            "ended by 'stop' with the id 31",
        ),
        (
            choice(token_ids=[31], logprobs={"token_logprobs": [-1.0]}, finish_reason="abort"),
            "ended by 'abort'",
        ),
    ],
)
def test_an_answer_that_can_not_be_right_is_refused(server, spoil, said):
    server.spoil = spoil
    with pytest.raises(RolloutError, match=said) as error:
        engine(server, vocabulary=VOCABULARY).generate([[5]])
    assert "row 0" in str(error.value)


def test_ids_may_be_written_as_tokens(server):
    server.spoil = choice(token_ids=None)
    assert engine(server).generate(PROMPTS).tokens.max() < VOCABULARY


def test_prompts_are_checked_before_anything_is_sent(server):
    with pytest.raises(RolloutError, match="prompt 1 is empty"):
        engine(server).generate([[5], []])
    with pytest.raises(RolloutError, match="there are no prompts"):
        engine(server).generate([])
    assert server.asked == []


@pytest.mark.parametrize("how", [{"temperature": 0.7}, {"top_p": 0.9}])
def test_log_probs_of_another_distribution_are_refused(server, how):
    with pytest.raises(ConfigError, match="--logprobs-mode processed_logprobs"):
        engine(server, Sampling(**how))
    engine(server, Sampling(**how), logprobs="drawn")


def test_at_a_temperature_the_server_scores_what_it_drew(server, model):
    how = Sampling(temperature=0.7, max_tokens=6)
    batch = engine(server, how, logprobs="drawn").generate(PROMPTS)
    assert ((trained_logps(model, batch, 0.7) - batch.logps) * batch.mask).abs().max() <= 1e-5


@pytest.mark.parametrize(
    "wrong", [{"url": "localhost:8000"}, {"workers": 0}, {"timeout": 0}, {"logprobs": "all"}]
)
def test_wrong_settings_are_named(wrong):
    settings = {"url": "http://localhost:1", "eos": [], "pad": 0, **wrong}
    with pytest.raises(ConfigError, match="expected"):
        ServerEngine(settings.pop("url"), "tiny", Sampling(), **settings)


def test_weights_need_a_way_to_the_server(server, model):
    plain = engine(server)
    with pytest.raises(ConfigError, match="no way to send version 3"):
        plain.update(model, 3)
    assert plain.generate([[5]]).version == 0  # stale, and it says so
    sent = []
    pushed = engine(server, push=lambda m, version: sent.append((m, version)))
    pushed.update(model, 3)
    assert sent == [(model, 3)]
    assert pushed.generate([[5]]).version == 3


def test_weights_go_by_a_folder(server, model, tmp_path):
    """The calls are those that vLLM 0.32.0 takes in development mode."""
    transformers = pytest.importorskip("transformers")
    VllmReload(server.url, tmp_path / "weights")(model, 1)
    assert server.called == [
        ("/collective_rpc",
         {"method": "reload_weights", "kwargs": {"weights_path": str(tmp_path / "weights")}}),
        ("/reset_prefix_cache", {}),
    ]  # fmt: skip
    again = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "weights")
    ids = torch.tensor([[1, 2, 3]])
    assert torch.equal(again(ids).logits, model(ids).logits)


@pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing`:FutureWarning")
def test_an_adapter_is_merged_into_the_weights_that_go(tmp_path):
    transformers = pytest.importorskip("transformers")
    peft = pytest.importorskip("peft")
    model = peft.get_peft_model(tiny_lm(), peft.LoraConfig(r=2, target_modules=["q_proj"]))
    for name, weight in model.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(weight, std=0.3)
    model.eval()
    ids = torch.tensor([[1, 2, 3]])
    before = model(ids).logits
    from rlproof.train.rollout.push import save_weights

    save_weights(model, tmp_path)
    again = transformers.AutoModelForCausalLM.from_pretrained(tmp_path).eval()
    assert (again(ids).logits - before).abs().max() < 1e-4
    assert (model(ids).logits - before).abs().max() < 1e-4
