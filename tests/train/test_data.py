"""Prompts: their order, and data that can't be used."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("transformers")

from tests.support import tiny_policy

from rlproof.errors import DataError
from rlproof.train.config import Data
from rlproof.train.data import prompts_of, rows_of

ROWS = [{"prompt": f"{n}+{n}=", "answer": 2 * n} for n in range(5)]
TEMPLATE = (
    "{% for m in messages %}{{ m.content }}{% endfor %}{% if add_generation_prompt %}={% endif %}"
)


def made(rows, room=None, **data):
    return prompts_of(rows, Data(**data), tiny_policy.tokenizer(), room, seed=3)


def test_every_pass_has_every_prompt_once_in_another_order():
    prompts = made(ROWS)
    taken = [p.number for p in prompts.take(0, 15)]
    passes = [taken[n : n + 5] for n in (0, 5, 10)]
    assert all(sorted(one) == list(range(5)) for one in passes)
    assert len({tuple(one) for one in passes}) > 1


def test_the_order_goes_on_where_it_was():
    prompts = made(ROWS)
    assert prompts.take(0, 12)[7:] == made(ROWS).take(7, 5)


def test_without_shuffling_the_order_is_that_of_the_file():
    assert [p.number for p in made(ROWS, shuffle=False).take(3, 4)] == [3, 4, 0, 1]


def test_the_other_columns_are_kept():
    prompt = made(ROWS).rows[2]
    assert dict(prompt.columns) == {"answer": 4}
    assert prompt.ids == tiny_policy.tokenizer()("2+2=")["input_ids"]


def test_messages_go_through_the_chat_template():
    tokenizer = tiny_policy.tokenizer()
    tokenizer.chat_template = TEMPLATE
    rows = [{"prompt": [{"role": "user", "content": "2+2"}]}]
    prompt = prompts_of(rows, Data(), tokenizer, None, 0).rows[0]
    assert prompt.ids == tokenizer("2+2=")["input_ids"]
    assert prompt.conversational


@pytest.mark.parametrize(
    ("rows", "room", "message"),
    [
        ([], None, "it is empty; expected one row"),
        ([{"question": "1"}], None, "row 0 has no column 'prompt'; it has 'question'"),
        ([{"prompt": ""}], None, "which has no token"),
        ([{"prompt": 3}], None, "expected text or a list of messages"),
        ([{"prompt": [{"role": "user", "content": "a"}]}], None, "has no chat template"),
        ([*ROWS, {"prompt": "1" * 9}], 8, "prompt 5 has 9 tokens, and the context has room for 8"),
    ],
)
def test_data_that_can_not_be_used(rows, room, message):
    with pytest.raises(DataError, match=message):
        made(rows, room)


def test_long_prompts_are_dropped_and_counted_where_that_is_asked_for():
    prompts = made([*ROWS, {"prompt": "1" * 9}], 8, too_long="drop")
    assert (len(prompts.rows), prompts.dropped) == (5, 1)
    with pytest.raises(DataError, match="all 1 prompts are too long"):
        made([{"prompt": "1" * 9}], 8, too_long="drop")


def test_json_lines(tmp_path):
    path = tmp_path / "prompts.jsonl"
    path.write_text("\n".join(map(json.dumps, ROWS)) + "\n\n")
    assert rows_of(Data(path=str(path))) == ROWS
    for text, message in (("{", "prompts.jsonl:1: no JSON"), ("[1]", "expected a JSON object")):
        path.write_text(text)
        with pytest.raises(DataError, match=message):
            rows_of(Data(path=str(path)))
    with pytest.raises(DataError, match="can't be read"):
        rows_of(Data(path=str(tmp_path / "no.jsonl")))


def test_a_dataset_from_disk(tmp_path):
    datasets = pytest.importorskip("datasets")
    datasets.Dataset.from_list(ROWS).save_to_disk(str(tmp_path / "one"))
    assert rows_of(Data(dataset=str(tmp_path / "one"))) == ROWS
    both = datasets.DatasetDict({"train": datasets.Dataset.from_list(ROWS)})
    both.save_to_disk(str(tmp_path / "two"))
    assert rows_of(Data(dataset=str(tmp_path / "two"))) == ROWS
    with pytest.raises(DataError, match="has no split 'test'; it has train"):
        rows_of(Data(dataset=str(tmp_path / "two"), split="test"))
