"""Sampling arguments, orders of prompts and masks of completions."""

import ast

import pytest
from tests.support.reading_loops import loop_of

from rlproof.read.loop.masks import pad_is_eos, value_masks
from rlproof.read.loop.order import groupings, reorders, repetitions
from rlproof.read.loop.sampling import (
    is_greedy,
    may_scale,
    of_steps,
    of_trainers,
    scorers,
    truncations,
)
from rlproof.read.loop.values import Values


def sampled(body: str):
    text = f"""
        OPTIONS = {{"top_p": 0.9, "do_sample": True}}

        def train(model, llm, ids, heat=0.7):
            {body}
            loss.backward()
    """
    loop = loop_of(text)
    values = Values(ast.parse("def train(model, llm, ids, heat=0.7): ..."))
    return of_steps(loop.passes, values)


@pytest.mark.parametrize(
    ("body", "settings"),
    [
        ("model.generate(ids, temperature=0.5)", {"temperature": 0.5}),
        ("model.generate(ids, temperature=heat, top_k=0)", {"temperature": 0.7, "top_k": 0}),
        ("p = SamplingParams(top_p=0.9); llm.generate(ids, p)", {"top_p": 0.9}),
        ("kw = dict(min_p=0.1); model.generate(ids, **kw)", {"min_p": 0.1}),
        ("kw = {'top_k': 20}; model.generate(ids, **kw)", {"top_k": 20}),
    ],
)
def test_settings_that_the_source_fixes(body, settings):
    [found] = sampled(body)
    assert {name: fixed.value for name, fixed in found.settings.items()} == settings


def test_settings_that_it_does_not_fix():
    [found] = sampled("model.generate(ids, temperature=config.heat)")
    assert found.settings == {}
    assert found.unknown == {"temperature"}


@pytest.mark.parametrize(
    "body",
    [
        "eval_out = model.generate(ids, top_p=0.9)",
        "x = judge_model.generate(ids, top_p=0.9)",
        "x = generate(ids, top_p=0.9)",
    ],
)
def test_sampling_of_something_else(body):
    assert sampled(body) == []


@pytest.mark.parametrize(
    ("given", "cuts"),
    [
        ("top_p=1.0, top_k=-1, repetition_penalty=1.0", {}),
        ("top_p=1.0, top_k=0, min_p=0.0", {}),
        ("top_k=None, top_p=None", {}),
        ("top_p=0.9", {"top_p": 0.9}),
        ("top_k=50", {"top_k": 50}),
        ("repetition_penalty=1.05", {"repetition_penalty": 1.05}),
    ],
)
def test_what_cuts_off(given, cuts):
    tree = ast.parse(f"GRPOConfig({given})")
    [found] = of_trainers(tree, Values(tree))
    assert truncations(found) == cuts


@pytest.mark.parametrize(
    ("given", "greedy"),
    [
        ("do_sample=False, top_p=0.9", True),
        ("do_sample=flag", True),
        ("temperature=0.0", True),
        ("temperature=0.5", False),
    ],
)
def test_greedy_decoding(given, greedy):
    [found] = sampled(f"model.generate(ids, {given})")
    assert is_greedy(found) == greedy


@pytest.mark.parametrize(
    ("text", "scales"),
    [
        ("x = logits / T", True),
        ("logits /= 0.7", True),
        ("out.logits.div_(t)", True),
        ("y = x / self.temperature", True),
        ("get_logps(model, ids, temperature=t)", True),
        ("score(model, temperature)", True),
        ("model.generate(ids, temperature=t)", False),
        ("sample_group(model, temperature)", False),
        ("c = Config(temperature=0.7)", False),
        ("loss = loss / accum", False),
    ],
)
def test_what_may_scale_logits(text, scales):
    assert may_scale(ast.parse(text)) == scales


def test_a_scorer_that_is_replaced_does_not_count():
    text = "def f(logits):\n    return logits.log_softmax(-1)\n"
    assert len(scorers(ast.parse(text))) == 1
    assert scorers(ast.parse(text + "f = kernel\n")) == []


def ordered(body: str):
    return loop_of(f"""
        def train(model, batch, rewards, G):
            prompts = [row["q"] for row in batch]
            {body}
            loss.backward()
    """).passes


@pytest.mark.parametrize(
    ("body", "order"),
    [
        ("x = prompts * G", "tiled"),
        ("x = [p for p in prompts for _ in range(G)]", "consecutive"),
        ("x = [p for _ in range(G) for p in prompts]", "tiled"),
        ("x = prompts.repeat_interleave(G, dim=0)", "consecutive"),
        ("x = torch.repeat_interleave(prompts, G)", "consecutive"),
        ("x = prompts.repeat(G, 1)", "tiled"),
        ("x = np.repeat(prompts, G)", "consecutive"),
        ("x = np.tile(prompts, G)", "tiled"),
    ],
)
def test_orders_of_prompts(body, order):
    [found] = repetitions(ordered(body))
    assert (found.order, found.size) == (order, "G")


@pytest.mark.parametrize("body", ["x = [prompt] * G", "x = 2 * G", "x = prompt.repeat(G, 1)"])
def test_one_prompt_has_no_order(body):
    assert repetitions(ordered(body)) == []


@pytest.mark.parametrize(
    ("body", "order"),
    [
        ("m = rewards.view(-1, G).mean(dim=1)", "consecutive"),
        ("g = rewards.reshape(len(batch), G); m = g.mean(-1)", "consecutive"),
        ("m = rewards.view(G, -1).mean(0)", "tiled"),
        ("m = rewards.view(-1, G)", None),
        ("m = rewards.view(-1, G).mean()", None),
        ("m = logits.view(-1, G).mean(dim=1)", None),
    ],
)
def test_orders_of_groups(body, order):
    found = groupings(ordered(body))
    assert [g.order for g in found] == ([order] if order else [])


def test_rows_that_are_sorted_between():
    passes = ordered("x = sorted(prompts)")
    assert reorders(passes, passes.trace.steps[0], passes.trace.steps[-1])
    passes = ordered("x = list(prompts)")
    assert not reorders(passes, passes.trace.steps[0], passes.trace.steps[-1])


@pytest.mark.parametrize(
    ("text", "always"),
    [
        ("t.pad_token = t.eos_token", True),
        ("t.pad_token_id = t.eos_token_id", True),
        ("if t.pad_token is None:\n    t.pad_token = t.eos_token", False),
        ("if __name__ == '__main__':\n    t.pad_token = t.eos_token", True),
        ("t.pad_token = '<pad>'", None),
        ("t.pad_token = t.eos_token\nt.pad_token = '<pad>'", None),
    ],
)
def test_padding_that_is_eos(text, always):
    found = pad_is_eos(ast.parse(text))
    assert (found.always if found else None) == always


@pytest.mark.parametrize(
    ("body", "against"),
    [
        ("completion_mask = (ids != tok.pad_token_id).float()", "pad"),
        ("completion_mask = ids.ne(tok.eos_token_id)", "eos"),
        ("pad = tok.eos_token_id; action_mask[ids == pad] = False", "eos"),
        ("response_mask = (ids != tok.pad_token_id) * other", "pad"),
        ("attention_mask = ids != tok.pad_token_id", None),
        ("completion_mask = (ids == tok.eos_token_id).cumsum(1) == 0", None),
        ("completion_mask = ids != 0", None),
        ("completion_mask = (ids != tok.eos_token_id) | first", None),
        ("completion_mask = ids != tok.eos_token_id; completion_mask[0] = 1", None),
    ],
)
def test_masks_that_compare_ids(body, against):
    loop = loop_of(f"""
        def train(ids, tok, action_mask):
            {body}
            loss.backward()
    """)
    assert [m.against for m in value_masks(loop.passes)] == ([against] if against else [])
