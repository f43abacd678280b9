"""The command: exit codes, both formats, files that grow, memory that does not."""

import json
import threading
import time
import tracemalloc

import pytest
from click.testing import CliRunner

from rlproof.cli import main
from rlproof.watch.command import inspect_path, render
from rlproof.watch.readers.opening import open_source
from rlproof.watch.readers.tail import lines

GOOD = '{"step": 0, "loss": 0.5, "reward": 0.25}\n'
BAD = '{"step": 1, "loss": "nan", "reward": 0.25}\n'


def run(*arguments):
    return CliRunner().invoke(main, ["inspect", *map(str, arguments)])


def write(path, text):
    path.write_text(text)
    return path


def test_exit_codes(tmp_path):
    assert run(write(tmp_path / "a.jsonl", GOOD)).exit_code == 0
    assert run(write(tmp_path / "b.jsonl", GOOD + BAD)).exit_code == 1
    assert run(tmp_path / "missing.jsonl").exit_code == 2
    assert run(tmp_path / "a.jsonl", "--fact", "nothing=1").exit_code == 2
    assert run(tmp_path / "a.jsonl", "--idle", "1").exit_code == 2
    assert run(write(tmp_path / "c.jsonl", '{"unknown": 1}\n')).exit_code == 5
    assert run(write(tmp_path / "d.txt", "nothing to see\n")).exit_code == 5


@pytest.mark.parametrize("pair", ["group_size", "group_size=x", "group_size=0", "scale=std",
                                  "objective=nobody", "beta=much"])  # fmt: skip
def test_wrong_facts_say_what_is_expected(tmp_path, pair):
    found = run(write(tmp_path / "a.jsonl", GOOD), "--fact", pair)
    assert found.exit_code == 2
    assert "expected" in found.output


def test_a_note_alone_is_clean(tmp_path):
    rows = "".join(f'{{"step": {i}, "kl": {0.05 if i < 8 else 1e-9}}}\n' for i in range(12))
    found = run(write(tmp_path / "a.jsonl", rows), "--format", "json")
    document = json.loads(found.stdout)
    assert [(f["code"], f["severity"]) for f in document["findings"]] == [("LOG013", "note")]
    assert found.exit_code == 0


def test_text_names_rule_step_evidence_and_what_was_not_checked(tmp_path):
    text = run(write(tmp_path / "a.jsonl", GOOD + BAD)).output
    assert "LOG009 not-a-number [error] from step 1, 1 of 2" in text
    assert "got loss nan   expected finite numbers" in text
    assert "rlproof explain LOG009" in text
    assert "skipped LOG001: not in the file: advantage-std, zero-variance-groups" in text
    assert text.endswith("Found 1 error: 2 logged rows, JSON lines.\n")


def test_reports_are_the_same_every_time(tmp_path):
    path = str(write(tmp_path / "a.jsonl", GOOD + BAD))
    for style in ("text", "json"):
        assert len({render(inspect_path(path, ()), style, 80) for _ in range(3)}) == 1


def test_a_line_that_was_torn_is_listed(tmp_path):
    text = run(write(tmp_path / "a.jsonl", GOOD + '{"step": 1, "lo')).output
    assert "1 lines: line 2: no JSON" in text
    assert "torn by a crash" in text


def test_the_report_goes_to_a_file(tmp_path):
    write(tmp_path / "a.jsonl", GOOD)
    assert run(tmp_path / "a.jsonl", "-o", tmp_path / "out.txt").output == ""
    assert "Nothing wrong" in (tmp_path / "out.txt").read_text()


def test_explain_knows_the_rules():
    found = CliRunner().invoke(main, ["explain", "spread-ignores-dead-groups"])
    assert found.exit_code == 0
    assert found.output.startswith("# LOG001 spread-ignores-dead-groups")


def test_a_framework_is_recognised_and_named(tmp_path):
    row = {"critic/score/mean": 0.5, "actor/entropy": -0.5, "actor/pg_clipfrac": 0.0}
    line = json.dumps({"step": 1, "data": row}) + "\n"
    text = run(write(tmp_path / "a.jsonl", line)).output
    assert "LOG006 impossible-entropy" in text
    assert "actor/entropy in nats" in text
    assert "JSON lines of verl" in text


def test_follow_reports_a_finding_once_and_ends_when_idle(tmp_path):
    path = write(tmp_path / "a.jsonl", GOOD)

    def more():
        time.sleep(0.3)
        with path.open("a") as file:
            file.write(BAD[:20])
            file.flush()
            time.sleep(0.7)
            file.write(BAD[20:] + BAD)

    writer = threading.Thread(target=more)
    writer.start()
    found = run(path, "--follow", "--idle", "1.5")
    writer.join()
    assert found.exit_code == 1
    assert found.output.count("LOG009 not-a-number") == 2  # when it came, and in the report
    assert "3 logged rows" in found.output
    assert "skipped 1 lines" not in found.output


def test_follow_of_a_trainer_state_reads_what_was_added(tmp_path):
    path = tmp_path / "trainer_state.json"
    history = [{"step": i, "loss": 0.1} for i in range(3)]
    path.write_text(json.dumps({"log_history": history[:1]}))
    looks = iter([True, False])

    def wait():
        path.write_text(json.dumps({"log_history": history}))
        return next(looks)

    assert [item.step for item in open_source(str(path), wait).items()] == [0, 1, 2]


def test_follow_refuses_what_does_not_grow_line_by_line(tmp_path):
    write(tmp_path / "a.parquet", "x")
    assert run(tmp_path / "a.parquet", "--follow").exit_code == 2
    assert run(tmp_path, "--follow").exit_code == 2


def test_a_file_that_is_begun_anew_is_read_from_its_start(tmp_path):
    path = write(tmp_path / "a.log", "one\ntwo\n")
    looks = iter([True, False])

    def wait():
        path.write_text("new\n")
        return next(looks)

    assert [text for _, text in lines(str(path), wait)] == [b"one", b"two", b"new"]


def test_memory_does_not_grow_with_a_dump(tmp_path):
    """Peak memory over a dump of four times the size is about the same: one step is held."""

    def peak(steps):
        path = tmp_path / f"{steps}.jsonl"
        with path.open("w") as file:
            for step in range(steps):
                for i in range(64):
                    row = {"step": step, "prompt": f"{step}/{i // 8}", "completion": f"{i} " * 400,
                           "reward": float(i % 3), "advantage": float(i % 3) - 1}  # fmt: skip
                    file.write(json.dumps(row) + "\n")
        tracemalloc.start()
        inspect_path(str(path), ())
        size = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return size, path.stat().st_size

    inspect_path(str(write(tmp_path / "warm.jsonl", GOOD)), ())
    small, large = peak(25), peak(100)
    assert large[1] > 3.9 * small[1]  # 2 MB and 8 MB
    assert large[0] < 1.2 * small[0]
    assert large[0] < large[1] / 4
