"""The `emu` command: registers one file per verb, and turns errors into a sentence and an exit code."""

from __future__ import annotations

import errno
import io
import os
import sys
from typing import Any, NoReturn, Protocol, cast

# pydantic looks through every installed package for plug-ins of its own: 25 ms of each `emu up`, for none.
os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")

import typer
from typer.core import TyperGroup

from emulator.cli import (
    calibrate,
    cp,
    data,
    devices,
    doctor,
    down,
    exec_,
    experiment,
    fidelity,
    forward,
    images,
    isa_check,
    link,
    logs,
    report,
    runs,
    schema,
    shell,
    stats,
    status,
    topology,
    up,
    validate,
)
from emulator.core.errors import EmuError, HostError, UsageError, no_interpreter, no_more_processes


class _Group(TyperGroup):
    """Says what an interrupted verb leaves behind: typer makes a plain exit of KeyboardInterrupt, and loses it."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as interrupted:
            if str(interrupted):  # a verb that was making something says what became of it
                print(f"emu: interrupted; {interrupted}", file=sys.stderr)
            raise


app = typer.Typer(
    name="emu",
    cls=_Group,
    help="Emulate a cluster of small machines on this host, and train on it. Start with: emu up topologies/wan-10.yaml",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
PASS_ON = {"allow_extra_args": True, "allow_interspersed_args": False, "ignore_unknown_options": True}

CLUSTER, PROGRAMS, TRAINING, FILES = "Cluster", "Programs in nodes", "Training", "Files and this host"
app.command("up", rich_help_panel=CLUSTER)(up.up)
app.command("down", rich_help_panel=CLUSTER)(down.down)
app.command("status", rich_help_panel=CLUSTER)(status.status)
app.command("stats", rich_help_panel=CLUSTER)(stats.stats)
app.add_typer(images.app, name="images", rich_help_panel=FILES)
app.add_typer(link.app, name="link", rich_help_panel=CLUSTER)
app.command("exec", rich_help_panel=PROGRAMS, context_settings=PASS_ON)(exec_.exec_)
app.command("shell", rich_help_panel=PROGRAMS)(shell.shell)
app.command("logs", rich_help_panel=PROGRAMS)(logs.logs)
app.command("cp", rich_help_panel=PROGRAMS)(cp.cp)
app.command("forward", rich_help_panel=PROGRAMS)(forward.forward)
app.command("experiment", rich_help_panel=TRAINING)(experiment.experiment)
app.command("report", rich_help_panel=TRAINING)(report.report)
app.command("runs", rich_help_panel=TRAINING)(runs.runs)
app.add_typer(data.app, name="data", rich_help_panel=TRAINING)
app.add_typer(devices.app, name="devices", rich_help_panel=FILES)
app.command("validate", rich_help_panel=FILES)(validate.validate)
app.add_typer(topology.app, name="topology", rich_help_panel=FILES)
app.command("schema", rich_help_panel=FILES)(schema.schema)
app.command("doctor", rich_help_panel=FILES)(doctor.doctor)
app.command("calibrate", rich_help_panel=FILES)(calibrate.calibrate)
app.command("fidelity", rich_help_panel=FILES)(fidelity.fidelity)
app.command("isa-check", rich_help_panel=FILES)(isa_check.isa_check)


@app.callback(invoke_without_command=True)
def _root(version: bool = typer.Option(False, "--version", help="Print the version and exit.")) -> None:
    if version:
        from emulator import __version__

        print(f"emu {__version__}")
        raise typer.Exit


def main() -> NoReturn:
    """Run the command line; a user's mistake is one sentence, a bug of ours keeps its traceback."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that lacks a character shows '?', no traceback
    try:
        # Not standalone, since the parser would draw a box of five lines around a mistake.
        status = app(prog_name="emu", standalone_mode=False)
    except EmuError as error:
        _end(error)
    except KeyboardInterrupt:
        sys.exit(130)  # before the verb was reached
    except _PARSER_ERROR as error:
        _end_misused(cast("_ParserError", error))
    except (OSError, RuntimeError) as error:
        known = _limit_of_host(error)
        if known is None:
            raise
        _end(known)
    sys.exit(status if isinstance(status, int) else 0)


class _Context(Protocol):
    command_path: str


class _ParserError(Protocol):
    """What the parser raises: `ctx` is the verb that it was at, if it came to one."""

    exit_code: int
    ctx: _Context | None

    def format_message(self) -> str: ...


#: the parser's class of all mistakes in a command line; typer gives no name of its own to it
_PARSER_ERROR = cast("type[Exception]", typer.BadParameter.__mro__[1])


def _end(error: EmuError) -> NoReturn:
    print(f"emu: {error}", file=sys.stderr)
    sys.exit(error.exit_code)


def _end_misused(error: _ParserError) -> NoReturn:
    """End with the parser's finding as a sentence; a group without a verb has shown its help instead."""
    what = " ".join(error.format_message().split()).rstrip(".")
    if type(error).__name__ != "NoArgsIsHelpError":
        verb = error.ctx.command_path if error.ctx is not None else "emu"
        fact, near, name = what.partition(". Did you mean ")
        hint = f"did you mean {name} " if near else ""
        _end(UsageError(fact[:1].lower() + fact[1:], fix=f"{hint}see `{verb} --help`"))
    if what:
        print(error.format_message(), file=sys.stderr)
    sys.exit(error.exit_code)


def _limit_of_host(error: OSError | RuntimeError) -> HostError | None:
    """The sentence for what any step may run into on a host that is at its limit; None = a bug of ours."""
    if isinstance(error, RuntimeError):
        return no_more_processes() if str(error) == "can't start new thread" else None
    if error.errno == errno.ENOSPC:
        return HostError("the output cannot be written (no space left)", fix="free space there")
    if error.errno == errno.EAGAIN and _forked(error):
        return no_more_processes()
    if isinstance(error, PermissionError) and error.filename == sys.executable:
        return no_interpreter()
    return None


def _forked(error: BaseException) -> bool:
    """Whether it came from a function that forks: EAGAIN of anything else would be a bug of ours."""
    frame = error.__traceback__
    while frame is not None and frame.tb_next is not None:
        frame = frame.tb_next
    return frame is not None and bool({"fork", "_fork_exec"} & {*frame.tb_frame.f_code.co_names})
