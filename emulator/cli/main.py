"""The `emu` command: registers one file per verb, and turns errors into a sentence and an exit code."""

from __future__ import annotations

import errno
import io
import os
import sys
from typing import NoReturn

# pydantic looks through every installed package for plug-ins of its own: 25 ms of each `emu up`, for none.
os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")

import typer

from emulator.cli import (
    cp,
    data,
    doctor,
    down,
    exec_,
    experiment,
    forward,
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
from emulator.core.errors import EmuError, HostError

app = typer.Typer(
    name="emu",
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
app.command("validate", rich_help_panel=FILES)(validate.validate)
app.add_typer(topology.app, name="topology", rich_help_panel=FILES)
app.command("schema", rich_help_panel=FILES)(schema.schema)
app.command("doctor", rich_help_panel=FILES)(doctor.doctor)


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
        app()
    except EmuError as error:
        print(f"emu: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        sys.exit(130)
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        print("emu: the output cannot be written (no space left); free space there", file=sys.stderr)
        sys.exit(HostError.exit_code)
    sys.exit(0)
