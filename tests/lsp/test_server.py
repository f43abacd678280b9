"""The language server as a child process, with pygls's own client at the other end.

Each test starts a server: some of every kind are in the fast suite, the others are slow.
"""

import asyncio
import os
import subprocess
import sys

import pytest

pytest.importorskip("pygls", reason="the extra lsp is not installed")

from lsprotocol import types

from rlproof.faults.page import page
from rlproof.lsp.checking import checked
from rlproof.lsp.settings import Settings
from tests.support.editor import Editor, applied, session, until

# pygls 2.1 asks asyncio what Python 3.14 has in inspect
pytestmark = pytest.mark.filterwarnings("ignore:'asyncio.iscoroutinefunction':DeprecationWarning")
BROKEN, RIGHT = page("SUR004").planted, page("SUR004").healthy
LINE = next(n for n, line in enumerate(BROKEN.split("\n")) if "# error: SUR004" in line)
READ = page("KLD007").planted  # found by reading alone
READ_LINE = next(n for n, line in enumerate(READ.split("\n")) if "# error: KLD007" in line)
RUN = {"run": True}


def codes(found):
    """Errors and warnings; notes are left out."""
    return [one.code for one in found if one.severity < types.DiagnosticSeverity.Information]


def edits_of(action, uri):
    return list(action.edit.changes[uri])


@pytest.fixture
def uri(tmp_path):
    return (tmp_path / "train.py").as_uri()


def test_a_planted_fault_is_shown_and_gone_with_it(tmp_path, uri):
    async def use(editor: Editor):
        editor.open(uri, BROKEN)
        found = await editor.diagnostics(uri)
        assert codes(found) == ["SUR004"]
        shown = found[0]
        assert shown.severity == types.DiagnosticSeverity.Error
        assert (shown.range.start.line, shown.range.end.line) == (LINE, LINE)
        assert shown.source == "rlproof"
        assert "got -2, expected -1.2" in shown.message  # the numbers that `check` prints
        related = shown.related_information[0]
        line = related.location.range.start.line
        assert BROKEN.split("\n")[line].startswith("def grpo_loss")
        editor.edit(uri, RIGHT)
        assert codes(await editor.diagnostics(uri)) == []

    assert session(use, tmp_path, RUN) == 0


def test_nothing_is_run_unless_the_editor_says_so(tmp_path, uri):
    async def use(editor: Editor):
        editor.open(uri, BROKEN)  # its fault shows in values only
        assert await editor.diagnostics(uri) == []
        changed = types.DidChangeConfigurationParams({"rlproof": RUN})
        editor.published.clear()
        editor.client.workspace_did_change_configuration(changed)
        assert codes(await editor.diagnostics(uri)) == ["SUR004"]

    assert session(use, tmp_path) == 0


async def _repair(editor, uri, line):
    """The verified repair, as soon as the search has it."""
    for _ in range(600):
        for action in await editor.actions(uri, line):
            if action.is_preferred:
                return action
        await asyncio.sleep(0.1)
    raise AssertionError("no verified repair was offered")


@pytest.mark.slow
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_a_verified_repair_makes_the_text_clean(tmp_path, uri, newline):
    broken = BROKEN.replace("\n", newline)
    (tmp_path / "train.py").write_text("# what is saved is another text\n")

    async def use(editor: Editor):
        editor.open(uri, broken)
        await editor.diagnostics(uri)
        action = await _repair(editor, uri, LINE)
        assert "(verified: " in action.title
        assert action.kind == types.CodeActionKind.QuickFix
        assert [one.code for one in action.diagnostics] == ["SUR004"]
        text = applied(broken, edits_of(action, uri))
        assert text.count(newline) == text.count("\n") == broken.count("\n")
        again = checked(str(tmp_path / "train.py"), text, Settings(run=True), tmp_path)
        assert [f.code for f in again.report.findings] == ["LOP010"]  # a note
        editor.edit(uri, text)
        assert codes(await editor.diagnostics(uri)) == []

    assert session(use, tmp_path, RUN) == 0
    assert (tmp_path / "train.py").read_text() == "# what is saved is another text\n"


@pytest.mark.slow
def test_edits_that_are_verified_together_are_offered_together(tmp_path, uri):
    """Two faults: the whole repair is verified, one edit alone is not and says so."""
    both = BROKEN.replace("return total / count", "return -total / count")  # SUR005 as well

    async def use(editor: Editor):
        editor.open(uri, both)
        assert codes(await editor.diagnostics(uri)) == ["SUR004", "SUR005"]
        action = await _repair(editor, uri, LINE)
        assert action.title.startswith("Repair all 2 findings (verified: ")
        others = [a.title for a in await editor.actions(uri, LINE) if not a.is_preferred]
        assert any(title.endswith("(this edit alone: not verified)") for title in others)
        editor.edit(uri, applied(both, edits_of(action, uri)))
        assert codes(await editor.diagnostics(uri)) == []

    assert session(use, tmp_path, RUN) == 0


@pytest.mark.slow
def test_repair_of_the_file_on_request(tmp_path, uri):
    async def use(editor: Editor):
        editor.open(uri, BROKEN)
        await editor.diagnostics(uri)
        await _repair(editor, uri, LINE)
        (action,) = await editor.actions(uri, LINE, only=["source.fixAll"])
        assert action.kind == "source.fixAll.rlproof"
        assert applied(BROKEN, edits_of(action, uri)).count("min(ratio * adv") == 1
        assert await editor.actions(uri, LINE, only=["refactor"]) == []

    assert session(use, tmp_path, RUN) == 0


@pytest.mark.slow
def test_an_edit_that_was_not_executed_says_so(tmp_path, uri):
    async def use(editor: Editor):
        editor.open(uri, READ)
        assert codes(await editor.diagnostics(uri)) == ["KLD007"]
        offered = await editor.actions(uri, READ_LINE)
        edits = [a for a in offered if "not verified" in a.title]
        assert len(edits) == 1
        assert not any(a.is_preferred for a in offered)
        editor.edit(uri, applied(READ, edits_of(edits[0], uri)))
        assert codes(await editor.diagnostics(uri)) == []

    assert session(use, tmp_path) == 0


def test_a_finding_is_accepted_on_its_line(tmp_path, uri):
    async def use(editor: Editor):
        editor.open(uri, READ)
        await editor.diagnostics(uri)
        (action,) = [a for a in await editor.actions(uri, READ_LINE) if "Ignore" in a.title]
        assert action.title == "Ignore KLD007 on this line"
        text = applied(READ, edits_of(action, uri))
        assert text.split("\n")[READ_LINE].endswith("# rlproof: ignore[KLD007]")
        editor.edit(uri, text)
        assert await editor.diagnostics(uri) == []

    assert session(use, tmp_path) == 0


UNICODE = READ.split("\n")
UNICODE[READ_LINE] += "  # 😀 β → 0"
# one of these characters is beyond the first plane: two units of UTF-16; in UTF-8 they take
# four, two and three bytes
EXTRA = {"utf-16": 1, "utf-8": 3 + 1 + 2, "utf-32": 0}


@pytest.mark.slow
@pytest.mark.parametrize(("encoding", "offered"), [
    ("utf-16", None), ("utf-16", ["utf-16"]), ("utf-8", ["utf-8"]), ("utf-32", ["utf-32"]),
])  # fmt: skip
def test_places_are_counted_as_the_client_does(tmp_path, uri, encoding, offered):
    text = "\n".join(UNICODE)

    async def use(editor: Editor):
        editor.open(uri, text)
        (found,) = await editor.diagnostics(uri)
        line = UNICODE[READ_LINE]
        end = len(line) + EXTRA[encoding]
        start = len(line) - len(line.lstrip())
        assert (found.range.start.line, found.range.start.character) == (READ_LINE, start)
        assert (found.range.end.line, found.range.end.character) == (READ_LINE, end)
        assert await editor.hover(uri, READ_LINE, end) is not None
        assert await editor.hover(uri, READ_LINE, end + 1) is None
        (action,) = [a for a in await editor.actions(uri, READ_LINE) if "Ignore" in a.title]
        (edit,) = edits_of(action, uri)
        assert edit.range.start == edit.range.end == types.Position(READ_LINE, end)

    assert session(use, tmp_path, encodings=offered) == 0


def test_hovering_shows_the_first_lines_of_the_page(tmp_path, uri):
    async def use(editor: Editor):
        editor.open(uri, READ)
        await editor.diagnostics(uri)
        shown = await editor.hover(uri, READ_LINE, 20)
        assert shown.contents.kind == types.MarkupKind.Markdown
        text = shown.contents.value
        assert text.startswith("**KLD007 ")
        assert page("KLD007").sections["What it does"].split("\n\n")[0] in text
        assert "`rlproof explain KLD007`" in text
        assert await editor.hover(uri, 0, 0) is None

    assert session(use, tmp_path) == 0


BAD = {
    "half a line": ("def grpo_loss(new_logps, old\n", "not checked: not valid Python: "),
    "NUL": ("x = 1\0\n", "not checked: not Python source"),
    "half a character": ("x = '\ud83d'\n", "not checked: not Python source"),
    "a recipe that is none": ("# rlproof: objective=grop\n" + RIGHT, "not checked: "),
    "a directive that is none": ("# rlproof: loss knew=a\n" + RIGHT, "not checked: "),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", BAD)
def test_bad_text_is_told_and_the_next_text_checked(tmp_path, uri, name):
    text, told = BAD[name]

    async def use(editor: Editor):
        editor.open(uri, text)
        (found,) = await editor.diagnostics(uri)
        assert found.message.startswith(told)
        assert found.code is None
        assert await editor.actions(uri, 0) == []
        assert await editor.hover(uri, 0, 0) is None
        editor.edit(uri, READ)
        assert codes(await editor.diagnostics(uri)) == ["KLD007"]

    assert session(use, tmp_path) == 0


SILENT = {
    "empty": "",
    "nothing of GRPO": "print('hello')\n",
    "only a byte-order mark": "\ufeff",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", SILENT)
def test_a_text_with_nothing_to_check_has_no_diagnostics(tmp_path, uri, name):
    async def use(editor: Editor):
        editor.open(uri, SILENT[name])
        assert await editor.diagnostics(uri) == []

    assert session(use, tmp_path) == 0


@pytest.mark.slow
def test_nested_too_deeply(tmp_path, uri):
    async def use(editor: Editor):
        editor.open(uri, "x = " + "(" * 5000 + ")" * 5000)
        (found,) = await editor.diagnostics(uri)
        assert found.message.startswith("not checked: ")
        editor.edit(uri, READ)
        assert codes(await editor.diagnostics(uri)) == ["KLD007"]

    assert session(use, tmp_path) == 0


@pytest.mark.slow
def test_files_that_are_gone_or_no_text_do_no_harm(tmp_path):
    """The open text counts, not the disk; what it imports from the disk may be anything."""
    (tmp_path / "helper.py").write_bytes(b"def grpo_loss(\xff\xfe\0")
    away = (tmp_path / "gone" / "train.py").as_uri()
    importing = (tmp_path / "uses.py").as_uri()

    async def use(editor: Editor):
        editor.open(away, READ)
        assert codes(await editor.diagnostics(away)) == ["KLD007"]
        editor.open(importing, "from helper import grpo_loss\n" + READ)
        assert codes(await editor.diagnostics(importing)) == ["KLD007"]
        editor.open("untitled:Untitled-1", READ)
        assert codes(await editor.diagnostics("untitled:Untitled-1")) == ["KLD007"]

    assert session(use, tmp_path) == 0


@pytest.mark.slow
def test_documents_of_other_kinds_are_left_alone(tmp_path, uri):
    async def use(editor: Editor):
        editor.open((tmp_path / "book.ipynb").as_uri(), "{}")
        editor.open("git:/train.py", READ)
        editor.open(uri, READ)
        await editor.diagnostics(uri)
        assert {one.uri for one in editor.published} == {uri}
        assert editor.messages == []

    assert session(use, tmp_path) == 0


NOISE = """
import os
print("Content-Length: 3")
os.write(1, b"noise" * 100)

def shout(*args):
    print("Content-Length: 7")
    os.write(1, b"noise")
"""


@pytest.mark.slow
def test_a_script_that_prints_does_not_reach_the_client(tmp_path, uri):
    loud = BROKEN.replace("total, count = 0.0, 0", "shout()\n    total, count = 0.0, 0")
    (tmp_path / "noise.py").write_text(NOISE)

    async def use(editor: Editor):
        editor.open(uri, "from noise import shout\n" + loud)
        assert codes(await editor.diagnostics(uri)) == ["SUR004"]
        assert (await editor.hover(uri, LINE + 2, 20)) is not None

    assert session(use, tmp_path, RUN) == 0


@pytest.mark.slow
def test_other_requests_are_answered_while_a_script_runs(tmp_path, uri):
    """By order, not by the clock: the answer is there before the slow script's diagnostics."""
    slow = "import time\n" + BROKEN.replace("    total,", "    time.sleep(3)\n    total,")
    other = (tmp_path / "other.py").as_uri()

    async def use(editor: Editor):
        editor.open(uri, slow)
        editor.open(other, READ)
        assert await editor.hover(other, READ_LINE, 20) is None  # not checked yet
        assert await editor.actions(uri, LINE) == []
        assert editor.published == []

    assert session(use, tmp_path, {"run": True, "timeout": 2}) == 0


@pytest.mark.slow
def test_a_text_that_changed_meanwhile_is_not_reported(tmp_path, uri):
    async def use(editor: Editor):
        editor.open(uri, BROKEN)
        editor.edit(uri, RIGHT)
        editor.edit(uri, READ)
        assert codes(await editor.diagnostics(uri)) == ["KLD007"]
        assert {one.version for one in editor.published} == {3}

    assert session(use, tmp_path, {"run": True, "debounce": 0}) == 0


@pytest.mark.slow
def test_a_closed_document_has_no_diagnostics(tmp_path, uri):
    async def use(editor: Editor):
        editor.open(uri, READ)
        await editor.diagnostics(uri)
        which = types.TextDocumentIdentifier(uri)
        editor.client.text_document_did_close(types.DidCloseTextDocumentParams(which))
        await until(lambda: list(editor.published[-1].diagnostics) == [] or None)

    assert session(use, tmp_path) == 0


@pytest.mark.slow
def test_settings_of_the_project_hold(tmp_path, uri):
    (tmp_path / "pyproject.toml").write_text('[tool.rlproof]\nignore = ["KLD007"]\n')

    async def use(editor: Editor):
        editor.open(uri, READ)
        assert await editor.diagnostics(uri) == []
        (tmp_path / "pyproject.toml").write_text('[tool.rlproof]\nignore = "KLD007"\n')
        editor.published.clear()
        saved = types.DidSaveTextDocumentParams(types.TextDocumentIdentifier(uri))
        editor.client.text_document_did_save(saved)
        (found,) = await editor.diagnostics(uri)
        assert found.severity == types.DiagnosticSeverity.Error
        assert "[tool.rlproof] ignore = 'KLD007'; expected a list" in found.message

    assert session(use, tmp_path) == 0


@pytest.mark.slow
@pytest.mark.parametrize("given", [{"runs": True}, {"run": "yes"}, [1], {"timeout": 0}])
def test_wrong_settings_are_told_and_the_server_goes_on(tmp_path, uri, given):
    async def use(editor: Editor):
        editor.open(uri, READ)
        assert codes(await editor.diagnostics(uri)) == ["KLD007"]
        (message,) = editor.messages
        assert message.startswith("settings of rlproof: ")
        assert "known: run, debounce, select" in message

    assert session(use, tmp_path, given) == 0


@pytest.mark.slow
def test_a_code_that_is_none_is_told(tmp_path, uri):
    async def use(editor: Editor):
        editor.open(uri, READ)
        (found,) = await editor.diagnostics(uri)
        assert "KLD999" in found.message

    assert session(use, tmp_path, {"select": ["KLD999"]}) == 0


def test_exit_without_shutdown_is_a_failure(tmp_path, uri):
    async def use(editor: Editor):
        editor.open(uri, READ)
        await editor.diagnostics(uri)

    assert session(use, tmp_path, shut_down=False) == 1


@pytest.mark.slow
def test_the_server_ends_while_a_script_hangs(tmp_path, uri):
    stuck = BROKEN.replace("    total,", "    while True: pass\n    total,")

    async def use(editor: Editor):
        editor.open(uri, stuck)
        await asyncio.sleep(0.5)

    assert session(use, tmp_path, {"run": True, "timeout": 600}) == 0


def test_the_server_ends_with_its_client(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "rlproof", "lsp"], cwd=tmp_path, stdin=subprocess.DEVNULL,
        capture_output=True, timeout=60, check=False, env=os.environ,
    )  # fmt: skip
    assert done.returncode == 1
    assert done.stdout == b""
