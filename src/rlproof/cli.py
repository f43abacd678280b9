"""The command line. Everything heavy is imported inside the command that needs it."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

import rlproof
from rlproof import completion
from rlproof.errors import ConfigError, NothingToCheckError, RlproofError

if TYPE_CHECKING:
    from rlproof.checks import Outcome

_EXAMPLES = """\b
Examples:
  rlproof demo                     a broken trainer, checked and proved
  rlproof check train.py           find the faults of a script
  rlproof check --format json .    every script below this folder, as JSON
  rlproof identify train.py        name the objective that a loss computes
  rlproof explain SUR004           what a fault is, and how to repair it
  rlproof defend train.py          what a script optimises, and why that is right
  rlproof inspect run.jsonl        what a log, a recorded step or a dump proves
  rlproof train                    train a table of logits, with its curves
  rlproof train run.toml           train a language model on a published objective
"""
_EPILOG = """\b
Exit codes: 0 clean or notes only, 1 errors or warnings, 2 usage or internal error,
5 nothing recognisable to check.
"""


class _Group(click.Group):
    """Turns every error into one line and an exit code; 1 is kept for findings."""

    def main(self, *args: Any, **kwargs: Any) -> Any:
        try:
            return super().main(*args, **kwargs)
        except RlproofError as error:
            click.echo(f"error: {error}", err=True)
            sys.exit(error.exit_code)
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(2)
        except RecursionError:
            click.echo("error: the script is nested too deeply to analyse", err=True)
            sys.exit(2)
        except Exception as error:
            if os.environ.get("RLPROOF_DEBUG"):
                raise
            text = f"{type(error).__name__}: {error}".split("\n")[0]
            click.echo(f"error: internal: {text} (RLPROOF_DEBUG=1 shows where)", err=True)
            sys.exit(2)


@click.group(
    cls=_Group, epilog=_EPILOG, context_settings={"help_option_names": ["-h", "--help"]},
    help=f"Find the bugs in a GRPO training script and prove each one with numbers.\n\n{_EXAMPLES}",
)  # fmt: skip
@click.version_option(rlproof.__version__, message="%(prog)s %(version)s")
def main() -> None:
    """The root command; its help text is given above."""


@main.command()
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@click.option("--format", "style",
              type=click.Choice(["full", "concise", "json", "html", "github", "sarif", "junit"]),
              help="How to print the report (default: full).")  # fmt: skip
@click.option("-o", "--output", type=click.Path(dir_okay=False), help="Write the report to FILE.")
@click.option("--select", multiple=True, metavar="CODE", shell_complete=completion.faults,
              help="Only these codes, names, prefixes.")  # fmt: skip
@click.option("--ignore", multiple=True, metavar="CODE", shell_complete=completion.faults,
              help="All but these.")  # fmt: skip
@click.option("--objective", metavar="NAME", shell_complete=completion.recipes,
              help="The recipe that is meant (default: auto).")  # fmt: skip
@click.option("--fix", is_flag=True, help="Write repairs that were verified by running them.")
@click.option("--diff", is_flag=True, help="Verify repairs and print a patch; write nothing.")
@click.option("--no-run", is_flag=True, help="Look at the source only; run nothing.")
@click.option("--timeout", type=click.FloatRange(min=0.01), metavar="S",
              help="Seconds for each function of the script (default: 10).")  # fmt: skip
@click.option("--baseline", type=click.Path(), metavar="FILE",
              help="Known findings: left out of the report and the exit code.")  # fmt: skip
@click.option("--write-baseline", type=click.Path(dir_okay=False), metavar="FILE",
              help="Write every finding to FILE, as known from now on; exit 0.")  # fmt: skip
@click.option("--jobs", type=click.IntRange(min=1), metavar="N",
              help="Check N files at once (default: the number of CPUs).")  # fmt: skip
@click.option("--no-cache", is_flag=True, help="Execute files that are known to be unchanged, too.")
@click.option("--watch", is_flag=True, help="Check again whenever a file changes; Ctrl-C ends.")
def check(
    paths: tuple[str, ...],
    output: str | None,
    write_baseline: str | None,
    watch: bool,
    **given: Any,
) -> None:
    """Read and probe scripts; print what is wrong with them.

    After --fix the exit code is that of the file as it is then: 0 where nothing is left.
    """
    changing = given["fix"] or given["diff"]
    if write_baseline is not None and (given["baseline"] is not None or changing or watch):
        raise ConfigError("--write-baseline goes without --baseline, --fix, --diff and --watch")
    if watch and (given["fix"] or output is not None):
        raise ConfigError("--watch goes without --fix and -o: it prints what it finds")
    if not watch:
        sys.exit(_check(paths, output, write_baseline, **given)[0])
    from rlproof.polling import repeat

    def once() -> tuple[int, list[str]]:
        try:
            return _check(paths, None, None, **given)
        except RlproofError as error:
            click.echo(f"error: {error}", err=True)
            return error.exit_code, []

    sys.exit(repeat(paths, once, lambda line: click.echo(line, err=True)))


def _check(
    paths: tuple[str, ...],
    output: str | None,
    write_baseline: str | None,
    *,
    style: str | None,
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    objective: str | None,
    fix: bool,
    diff: bool,
    no_run: bool,
    timeout: float | None,
    baseline: str | None,
    jobs: int | None,
    no_cache: bool,
) -> tuple[int, list[str]]:
    """One check, printed: the exit code, and every file that was judged."""
    from rlproof.checks import check_paths
    from rlproof.options import Options

    options = Options.resolve(
        select, ignore, objective, not no_run, timeout, style,
        fix=fix, diff=diff, baseline=baseline, jobs=jobs, cache=not no_cache,
    )  # fmt: skip
    if write_baseline is not None:
        outcome = check_paths(paths, replace(options, baseline=None))
        return _write_baseline(outcome, write_baseline), []
    outcome = check_paths(paths, options)
    for line in outcome.failures:
        click.echo(f"error: {line}", err=True)
    for line in outcome.repairs:
        click.echo(line, err=True)
    if diff and style is None:
        _emit_bytes(outcome.patch, output)
    elif options.style == "html":
        _emit_page(outcome.render("html", _width()), output)
    elif outcome.reports or options.style in ("json", "github", "sarif", "junit"):
        _emit(outcome.render(options.style, _width()), output)
    return outcome.exit_code, list(outcome.sources)


def _write_baseline(outcome: Outcome, path: str) -> int:
    """Write what is known from now on; nothing where a file could not be checked."""
    from rlproof.baseline import document
    from rlproof.report.write import write_atomically

    for line in outcome.failures:
        click.echo(f"error: {line}", err=True)
    if any(error.exit_code == 2 for error in outcome.errors):
        return 2
    text, count = document(path, outcome.reports, outcome.sources)
    write_atomically(path, text, "--write-baseline")
    click.echo(f"{path}: {count} finding{'s' * (count != 1)} known from now on")
    return 0


@main.command()
@click.argument("path")
@click.option("--format", "style", type=click.Choice(["text", "json"]), default="text")
@click.option("--timeout", type=click.FloatRange(min=0.01), metavar="S")
def identify(path: str, style: str, timeout: float | None) -> None:
    """Name the objective that each loss computes, coordinate by coordinate."""
    from rlproof.checks import check_paths
    from rlproof.options import Options
    from rlproof.report.coordinates import table

    options = Options.resolve((), (), None, True, timeout, None)
    outcome = check_paths((path,), replace(options, baseline=None))
    if outcome.failures:
        raise outcome.error()
    if style == "json":
        _emit(outcome.without_findings().render("json", _width()), None)
    else:
        _emit(table(outcome.called()), None)
    sys.exit(0 if any(r.checked for r in outcome.reports) else NothingToCheckError.exit_code)


@main.command()
@click.argument("path", required=False)
@click.option("--only", multiple=True, metavar="CLAIM",
              help="Only these claims: A9, or A9,B4, or the letter of a chapter.")  # fmt: skip
@click.option("--full", is_flag=True, help="Statements, proofs and sources as well.")
@click.option("--quiz", is_flag=False, flag_value="all", metavar="[N]",
              help="A reviewer's questions, one by one; N asks that one alone.")  # fmt: skip
@click.option("--format", "style", type=click.Choice(["text", "html", "md", "json"]),
              default="text", help="How to print the defence (default: text).")  # fmt: skip
@click.option("-o", "--output", type=click.Path(dir_okay=False), help="Write it to FILE.")
@click.option("--objective", metavar="NAME", shell_complete=completion.recipes,
              help="The recipe that is meant (default: auto).")  # fmt: skip
@click.option("--timeout", type=click.FloatRange(min=0.01), metavar="S",
              help="Seconds for each request to the script's functions (default: 10).")  # fmt: skip
def defend(
    path: str | None,
    only: tuple[str, ...],
    full: bool,
    quiz: str | None,
    style: str,
    output: str | None,
    objective: str | None,
    timeout: float | None,
) -> None:
    """Defend the mathematics: of a script, or of rlproof's own tiny trainer.

    Without PATH the tiny trainer is defended line by line, and every claim is computed anew.
    With PATH its functions are run: what they optimise, in words and numbers, and which lines
    can't be defended.
    """
    from rlproof.defend import defend_path, defend_tiny

    if quiz is not None:
        if path or only or output or style != "text":
            raise ConfigError("--quiz goes alone, or with the number of a question: --quiz 4")
        from rlproof.quiz import run as ask

        sys.exit(ask(quiz, _width(), _echo))
    if path is None:
        defended = defend_tiny(only, full, style, _width())
    elif only:
        raise ConfigError("--only chooses claims of the tiny trainer's defence; leave PATH out")
    else:
        defended = defend_path(path, objective, timeout, full, style, _width())
    (_emit_page if style == "html" else _emit)(defended.text, output)
    sys.exit(defended.exit_code)


@main.command()
@click.argument("path", type=click.Path())
@click.option("--follow", is_flag=True, help="Go on while the file grows.")
@click.option("--idle", type=click.FloatRange(min=0), metavar="S",
              help="With --follow: end after S seconds without a new line.")  # fmt: skip
@click.option("--fact", "facts", multiple=True, metavar="NAME=VALUE",
              help="What the run declares, such as group_size=8 or objective=dapo.")  # fmt: skip
@click.option("--format", "style", type=click.Choice(["text", "json"]), default="text")
@click.option("-o", "--output", type=click.Path(dir_okay=False), help="Write the report to FILE.")
def inspect(
    path: str,
    follow: bool,
    idle: float | None,
    facts: tuple[str, ...],
    style: str,
    output: str | None,
) -> None:
    """Judge a training run by its log, its recorded steps or a dump of its rollouts.

    PATH is a log (JSON lines, CSV, printed output, trainer_state.json, TensorBoard, wandb,
    trackio's project.db or project.db#run), a file that `rlproof.record` wrote, a rollout dump, or
    a folder of these.
    """
    from rlproof.watch.command import follow_path, inspect_path, render

    if idle is not None and not follow:
        raise ConfigError("--idle goes with --follow")
    if follow:
        emit = _echo if style == "text" and output is None else _nothing
        inspection = follow_path(path, facts, idle, emit, _width())
    else:
        inspection = inspect_path(path, facts)
    _emit(render(inspection, style, _width()), output)
    sys.exit(inspection.exit_code)


def _nothing(_text: str) -> None:
    """Says nothing until the end."""


@main.command()
@click.argument("run", required=False, metavar="[RUN.toml]", type=click.Path())
@click.option("--resume", is_flag=True, help="Go on from the last checkpoint of the run's folder.")
@click.option("--check-first-step", is_flag=True,
              help="Judge the first step; end there if something is wrong with it.")  # fmt: skip
@click.option("--set", "settings", multiple=True, metavar="SECTION.KEY=VALUE",
              help="Replace a setting of the file, such as optimizer.lr=1e-5.")  # fmt: skip
@click.option("--steps", type=int, help="Table: training steps (default: 60).")
@click.option("--group-size", type=int, help="Table: completions a prompt (default: 8).")
@click.option("--epochs", type=int, help="Table: updates on each batch (default: 2).")
@click.option("--lr", type=float, help="Table: learning rate (default: 2).")
@click.option("--clip-eps", type=float, help="Table: the clip of the ratio (default: 0.2).")
@click.option("--beta", type=float, help="Table: weight of the KL term (default: 0.04).")
@click.option("--seed", type=int, help="Table: of the sampling (default: 0).")
@click.option("--objective", metavar="NAME",
              help="Table: a published objective instead of the tiny trainer's own.")  # fmt: skip
@click.option("--log", type=click.Path(), metavar="FILE",
              help="Table: write the metrics of every step as JSON lines.")  # fmt: skip
@click.option("--record", type=click.Path(), metavar="FILE",
              help="Table: record every tenth step for `rlproof inspect`.")  # fmt: skip
@click.option("--plot", type=click.Path(), metavar="FILE.svg",
              help="Table: write the curves as SVG.")  # fmt: skip
def train(
    run: str | None,
    resume: bool,
    check_first_step: bool,
    settings: tuple[str, ...],
    **table: Any,
) -> None:
    """Train a table of logits, or a language model as RUN.toml says.

    Without RUN.toml the tiny trainer runs for a moment and shows its curves; options marked
    "Table" go with it. With RUN.toml every step is written to metrics.jsonl in the run's folder,
    some with all they were computed from, for `rlproof inspect`: docs/reference/train.md.
    """
    given = {name: value for name, value in table.items() if value is not None}
    if run is not None:
        if given:
            option = "--" + next(iter(given)).replace("_", "-")
            raise ConfigError(f"{option} is for training without RUN.toml; use --set for this run")
        from rlproof.train.command import train_run

        sys.exit(train_run(run, settings, resume, check_first_step, _echo))
    if resume or check_first_step or settings:
        option = "--resume" if resume else "--set" if settings else "--check-first-step"
        raise ConfigError(f"{option} needs RUN.toml, the settings of a run (docs/how-to/train.md)")
    from rlproof.train.tabular import Settings
    from rlproof.train.tabular_command import Files, train_table

    files = Files(*(given.pop(name, None) for name in ("log", "record", "plot")))
    sys.exit(train_table(Settings(**given), files, _echo))


@main.command()
@click.argument("fault", shell_complete=completion.pages)
def explain(fault: str) -> None:
    """Print the page of a fault, or of a rule of `inspect`."""
    from rlproof.faults.page import page
    from rlproof.faults.registry import find
    from rlproof.watch.rules.registry import find as find_rule
    from rlproof.watch.rules.registry import page as rule_page

    try:
        rule = find_rule(fault)
        text = rule_page(rule.code).markdown if rule else page(find(fault).code).markdown
    except KeyError as error:
        raise ConfigError(str(error.args[0])) from None
    if sys.stdout.isatty():
        from rich.console import Console
        from rich.markdown import Markdown

        Console(width=_width()).print(Markdown(text))
    else:
        click.echo(text, nl=False)


@main.command()
@click.option("--format", "style", type=click.Choice(["text", "json"]), default="text")
def faults(style: str) -> None:
    """List the catalogue."""
    from rlproof.report.catalogue import listing

    click.echo(listing(style, _width()), nl=False)


@main.command()
def demo() -> None:
    """Check a broken trainer of ours, prove its faults, and check the repaired one."""
    from rlproof.demo import run

    sys.exit(run(_width(), _echo))


@main.command()
@click.option("--stdio", is_flag=True, hidden=True, help="What editors add; there is no other.")
def lsp(stdio: bool) -> None:  # noqa: ARG001
    """Serve an editor: findings, repairs and explanations over the language server protocol.

    Speaks over standard input and output; docs/how-to/editors.md sets up some editors. Needs
    `pip install 'rlproof[lsp]'`. Runs no function of a script unless the editor's settings say so.
    """
    from rlproof.lsp.start import serve

    sys.exit(serve())


def _emit(text: str, output: str | None) -> None:
    if output is None:
        _echo(text)
    else:
        from rlproof.report.write import write_atomically

        write_atomically(output, click.unstyle(text))


def _emit_bytes(raw: bytes, output: str | None) -> None:
    """A patch, in whatever encoding its files have."""
    if output is None:
        click.echo(raw, nl=False)
    else:
        from rlproof.report.write import write_atomically

        write_atomically(output, raw)


def _emit_page(page: str, output: str | None) -> None:
    """HTML names its own encoding, so it is UTF-8 wherever it goes."""
    if output is None:
        click.echo(page.encode("utf-8", "backslashreplace"), nl=False)
    else:
        _emit(page, output)


def _echo(text: str) -> None:
    """Print with colour where the terminal has it, in ASCII where it has no more."""
    colour = None
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        colour = False
    elif os.environ.get("FORCE_COLOR"):
        colour = True
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    click.echo(_encodable(text, encoding), nl=False, color=colour)


def _encodable(text: str, encoding: str) -> str:
    try:
        text.encode(encoding)
    except (UnicodeEncodeError, LookupError):
        from rlproof.report.ascii import to_ascii

        return to_ascii(text)
    return text


def _width() -> int:
    import shutil

    return max(60, min(120, shutil.get_terminal_size((100, 24)).columns))
