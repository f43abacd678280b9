"""The reference of the command line, from its click commands."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

import click

from rlproof.cli import main
from rlproof_docs.text import code, fence, plain, table


def pages() -> Iterator[tuple[str, str]]:
    """The fragment that reference/cli.md includes."""
    yield "_generated/cli.md", document()


def document() -> str:
    """One section for each command, in alphabetical order."""
    context = click.Context(main, info_name="rlproof")
    return "\n".join(
        _section(command, click.Context(command, info_name=name, parent=context))
        for name, command in sorted(main.commands.items())
        if not command.hidden
    )


def _section(command: click.Command, context: click.Context) -> str:
    usage = " ".join([context.command_path, *command.collect_usage_pieces(context)])
    parts = [f"(cli-{command.name})=\n## rlproof {command.name}\n", _help(command)]
    parts += [fence("text", usage)]
    if rows := [_row(option, context) for option in command.params if _is_option(option)]:
        parts += [table(("option", "what it does"), rows)]
    return "\n".join(parts)


def _help(command: click.Command) -> str:
    """The help's paragraphs; those that click is told to leave alone keep their line breaks."""
    parts = []
    for block in inspect.cleandoc(command.help or "").split("\n\n"):
        kept = block.startswith("\b")
        parts.append(fence("text", block.lstrip("\b\n")) if kept else plain(block) + "\n")
    return "\n".join(parts)


def _is_option(parameter: click.Parameter) -> bool:
    return isinstance(parameter, click.Option) and not parameter.hidden


def _row(option: click.Parameter, context: click.Context) -> tuple[str, str]:
    names, text = option.get_help_record(context) or (", ".join(option.opts), "")
    return code(names), plain(text) or _choices(option)


def _choices(option: click.Parameter) -> str:
    default = option.default
    return f"Default: {code(str(default))}." if default else ""
