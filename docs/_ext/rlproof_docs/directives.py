"""Two directives: `run` shows a command and what it prints, `repair` edits a page's script."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.util.docutils import SphinxDirective

from rlproof_docs import commands

_AND = " && "
"""Between patterns of one option, all of which must be found."""


class _Executed(SphinxDirective):
    """Runs in a folder that all directives of one page share."""

    @property
    def folder(self) -> Path:
        """The page's folder: made when its first directive is read."""
        kept = self.env.temp_data
        if "rlproof_folder" not in kept:
            kept["rlproof_folder"] = tempfile.TemporaryDirectory(prefix="rlproof-docs-")
            commands.prepare(Path(kept["rlproof_folder"].name))
        return Path(kept["rlproof_folder"].name)

    def block(self, text: str, language: str) -> nodes.Node:
        """A literal block."""
        block = nodes.literal_block(text, text, language=language, classes=["executed"])
        self.set_source_info(block)
        return block

    def guarded(self, action: Callable[[], str]) -> str:
        """The text, or an error that names this place of the page."""
        try:
            return action()
        except commands.UnexpectedError as error:
            raise self.error(str(error)) from None


class Run(_Executed):
    """`{run}`: the content is one command. Options say what the page counts on."""

    has_content = True
    option_spec: ClassVar[dict[str, Callable[[str], Any]]] = {
        "exit": directives.nonnegative_int,
        "only": directives.unchanged_required,
        "expect": directives.unchanged_required,
    }

    def run(self) -> list[nodes.Node]:
        """Execute, check and show."""
        return [self.block(self.guarded(self._output), "text")]

    def _output(self) -> str:
        command = "\n".join(self.content)
        output = commands.run(command, self.folder, self.options.get("exit", 0))
        for pattern in filter(None, self.options.get("expect", "").split(_AND)):
            commands.expect(output, pattern)
        if "only" in self.options:
            output = commands.only(output, self.options["only"].split(_AND))
        return "$ " + command.replace("\n", "\n> ") + "\n" + output


class Repair(_Executed):
    """`{repair}`: apply repairs of docs/examples/repairs.py, by code, and show the diff."""

    required_arguments = 1
    optional_arguments = 20

    def run(self) -> list[nodes.Node]:
        """Edit the page's copy of the script."""
        return [self.block(self.guarded(self._diff), "diff")]

    def _diff(self) -> str:
        repairs = import_module("repairs").REPAIRS
        file = self.folder / "broken_trainer.py"
        return "".join(commands.edit(file, *repairs[code]) for code in self.arguments)
