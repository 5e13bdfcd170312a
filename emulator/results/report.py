"""A run -> report.html: one file that needs no other, for a browser, for print and for a paper's draft."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from emulator.results import energy, fidelity, figures, linpack, numbers
from emulator.results.summary import summarise, traces

if TYPE_CHECKING:
    from collections.abc import Mapping

    from emulator.results.store import Run


def rebuild(run: Run) -> dict[str, Any]:
    """Write summary.json and report.html from the records, and return the summary.

    Also for a run cut short, with what it has. Raises ResultError where records cannot be read or files written.
    """
    asked = run.read("experiment.json")
    if linpack.is_one(asked):
        return linpack.rebuild(run)
    if fidelity.is_one(asked):
        return fidelity.rebuild(run)
    found = traces(run)
    summary = summarise(run, found)
    run.write("summary.json", summary)
    run.write_text("report.html", render(summary, figures.all_plots(summary, found)))
    return summary


def render(summary: Mapping[str, Any], plots: list[figures.Plot]) -> str:
    """The page of a training."""
    return page(
        "report.html.j2",
        summary=summary,
        honesty=honesty_rows(summary),
        columns=numbers.COLUMNS,
        rows=[numbers.row(name, item) for name, item in summary["variants"].items()],
        splits=[_split(name, item) for name, item in summary["variants"].items()],
        energy=energy.rows(summary["variants"]),
        energy_model=energy.MODEL,
        plots=plots,
    )


def page(template: str, **values: Any) -> str:
    """A page by one of the templates. Everything a user named (variants, nodes) is escaped."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("emulator.results"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(template).render(**values)


def _split(name: str, item: Mapping[str, Any]) -> tuple[str, ...]:
    parts = [item["pull_seconds"], item["compute_seconds"], item["push_seconds"]]
    total = None if None in parts else sum(parts)
    shares = [numbers.seconds(part) for part in parts]
    return (
        name,
        *shares,
        numbers.seconds(total),
        numbers.size(item["payload_bytes_from_server"]),
        numbers.size(item["message_bytes_to_server"]),
        numbers.size(item["message_bytes_per_update"]),
        numbers.times((item["against_baseline"] or {}).get("message_reduction_per_update")),
    )


def honesty_rows(summary: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The honesty block as label and text; what was not measured says so."""
    block = summary["honesty"]
    rows = [
        ("Engine", f"{block['engine']}; runtime {block['runtime']}; link driver {block['link_driver']}"),
        ("Time scale", f"{block['time_scale']:g} real seconds for one emulated second"),
        ("Seed, repeats", f"{block['seed']}; {block['repeats']} (repeat n uses seed + n)"),
        ("Host", host_line(block["host"])),
        ("Real time", _real(block["real_seconds"])),
        ("Expected use", block["admission"] or "not estimated"),
        ("Host busy", _busy(block["host_busy"])),
        ("Compute step", _compute(block["compute"])),
        *([("Emulated processors", _pacing(block["pacing"]))] if block["pacing"] else []),
        ("CPU throttling", _throttling(block["throttling"])),
        ("Packet drops", _drops(block["drops"])),
        ("Link driver", _relay(block["relay"])),
        ("Evaluation", block["evaluation"]),
    ]
    return rows + [("Note", note) for note in block["notes"]]


def host_line(host: Mapping[str, Any] | None) -> str:
    """The host in a line: processor, memory, kernel, versions."""
    if host is None:
        return "not recorded"
    memory = numbers.size(host["memory"])
    versions = ", ".join(f"{name} {version}" for name, version in host["versions"].items())
    return f"{host['cpu']}, {host['cores']} cores, {memory}, Linux {host['kernel']}; {versions}"


def _real(seconds: Mapping[str, float] | None) -> str:
    if not seconds:
        return "not recorded"
    parts = ", ".join(f"{name} {value:.1f} s" for name, value in seconds.items())
    return f"{parts} (evaluation included)"


def _busy(busy: Mapping[str, float] | None) -> str:
    if busy is None:
        return "not measured (virtual clock: the host's load changes no result)"
    return (
        f"{busy['mean'] * 100:.0f} % of all cores on average, {busy['max'] * 100:.0f} % at most; "
        f"beside it {busy['background_mean'] * 100:.0f} % at background priority (the evaluator)"
    )


def _compute(compute: Mapping[str, Any] | None) -> str:
    if compute is None:
        return "modelled from floating-point operations"
    measured = ", ".join(f"{name} {value:.3f} s" for name, value in compute["measured"].items())
    return f"expected {compute['expected']:.3f} s (cost alone on this host, over the caps); measured {measured}"


def _pacing(pacing: Mapping[str, Any]) -> str:
    measured = ", ".join(
        f"{name} {one['host_s']:.3f} of {one['device_s']:.3f} s ({one['overran']} of {one['paced']} overran)"
        for name, one in pacing["measured"].items()
    )
    return f"{pacing['expected']}; QEMU took, at this time scale, {measured}"


def _throttling(worst: Mapping[str, float] | None) -> str:
    if worst is None:
        return "not measured (virtual clock)"
    nodes = sorted(((node, share) for node, share in worst.items() if share >= 0.005), key=lambda item: -item[1])
    if not nodes:
        return "in less than 1 % of the quota periods of every node"
    listed = ", ".join(f"{node} {share * 100:.0f} %" for node, share in nodes)
    return f"largest share of quota periods with throttling: {listed}"


def _drops(drops: Mapping[str, int] | None) -> str:
    if drops is None:
        return "none possible (messages over modelled links)"
    return f"{drops['asked']:,} by the set loss, {drops['queue']:,} by full queues, {drops['unasked']:,} unasked"


def _relay(relay: Mapping[str, Any] | None) -> str:
    if relay is None:
        return "modelled, never late"
    text = f"priority {relay['priority'] or 'of the kernel'}, {relay['restarts']} restarts"
    if relay["lateness_p99_real"] is None:
        return f"{text}; the kernel shapes and tells no lateness"
    p50, p99 = relay["lateness_p50_real"] * 1e3, relay["lateness_p99_real"] * 1e3
    emulated = relay["lateness_p99_emulated"] * 1e3
    return f"{text}; lateness p50 {p50:.2f} ms, p99 {p99:.2f} ms real ({emulated:.2f} ms emulated)"
