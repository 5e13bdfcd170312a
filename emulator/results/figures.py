"""The figures of a report, each a data URI with a caption. Axes carry units; all times are emulated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from emulator.results import style

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from matplotlib.axes import Axes

    from emulator.results.trace import Evaluation, Trace

    Traces = Mapping[str, Sequence[Trace]]
    Summary = Mapping[str, Any]


@dataclass(frozen=True)
class Plot:
    """A figure to embed: `uri` is its image, `caption` says what it shows, `wide` that it takes the whole row."""

    title: str
    uri: str
    caption: str
    wide: bool = False


def all_plots(summary: Summary, found: Traces) -> list[Plot]:
    """Every figure that the run has data for."""
    makers = (accuracy_over_time, accuracy_over_bytes, staleness, time_split, cpu, traffic)
    with style.settings():
        return [maker(summary, found) for maker in makers]


def accuracy_over_time(_summary: Summary, found: Traces) -> Plot:
    figure, (axes,) = style.panels()
    _curves(axes, found, lambda item: item.t)
    axes.set_xlabel("emulated time since the first pull (s)")
    axes.set_xlim(left=0)
    return Plot("Accuracy over time", style.data_uri(figure), "Test accuracy over emulated time." + _thin(found))


def accuracy_over_bytes(_summary: Summary, found: Traces) -> Plot:
    figure, (axes,) = style.panels()
    _curves(axes, found, lambda item: item.payload_bytes / 1e6 if item.payload_bytes else None)
    if any(item.payload_bytes for repeats in found.values() for one in repeats for item in one.evaluations):
        axes.set_xscale("log")
    axes.set_xlabel("payload received by the server (MB, log scale)")
    caption = "Test accuracy over the payload bytes that all workers together pushed to the server." + _thin(found)
    return Plot("Accuracy over bytes to the server", style.data_uri(figure), caption)


def _thin(found: Traces) -> str:
    many = max(len(repeats) for repeats in found.values())
    lines = "" if many == 1 else f" One line for each of {many} repeats."
    floor = _floor(found)
    return f"{lines} The axis starts at {floor} %." if floor else lines


def _floor(found: Traces) -> int:
    """Where the accuracy axis starts: at half where everything ends well above it, for the end is what differs."""
    finals = [one.final_accuracy or 0.0 for repeats in found.values() for one in repeats]
    return 50 if min(finals, default=0.0) > 0.8 else 0


def _curves(axes: Axes, found: Traces, x_of: Callable[[Evaluation], float | None]) -> None:
    for number, (name, repeats) in enumerate(found.items()):
        for index, one in enumerate(repeats):
            points = [(x, item.accuracy * 100) for item in one.evaluations if (x := x_of(item)) is not None]
            axes.plot(
                [x for x, _ in points],
                [y for _, y in points],
                color=style.colour(number),
                linestyle=style.line(number),
                linewidth=1.6 if len(repeats) == 1 else 1.0,
                label=name if index == 0 else None,
            )
    axes.set_ylabel("test accuracy (%)")
    axes.set_ylim(_floor(found), 100)
    if axes.lines:
        axes.legend(loc="lower right")


def staleness(_summary: Summary, found: Traces) -> Plot:
    """Share of the applied updates by staleness, all repeats of a variant together."""
    import numpy as np

    figure, (axes,) = style.panels()
    for number, (name, repeats) in enumerate(found.items()):
        counts: dict[int, int] = {}
        for one in repeats:
            for value, times in one.staleness.items():
                counts[value] = counts.get(value, 0) + times
        if not counts:
            continue
        edges = np.arange(max(counts) + 2) - 0.5
        shares = [100 * counts.get(value, 0) / sum(counts.values()) for value in range(max(counts) + 1)]
        axes.stairs(shares, edges, color=style.colour(number), linestyle=style.line(number), linewidth=1.4, label=name)
    axes.set_xlabel("staleness (updates applied between a worker's pull and its push)")
    axes.set_ylabel("share of updates (%)")
    if axes.patches:
        axes.legend()
    return Plot("Staleness", style.data_uri(figure), "How many other updates the server applied in between.")


def time_split(summary: Summary, _found: Traces) -> Plot:
    """Where a worker's step goes: mean emulated seconds of pull, compute and push."""
    figure, (axes,) = style.panels()
    names = list(summary["variants"])
    parts = (
        ("pull_seconds", "pull (model down)"),
        ("compute_seconds", "compute"),
        ("push_seconds", "push (gradient up)"),
    )
    left = [0.0] * len(names)
    for number, (key, label) in enumerate(parts):
        widths = [summary["variants"][name][key] or 0.0 for name in names]
        axes.barh(
            names, widths, left=left, height=0.6, color=style.COLOURS[(4, 5, 3)[number]], label=label,
            edgecolor="white", linewidth=0.5,
        )  # fmt: skip
        left = [a + b for a, b in zip(left, widths, strict=True)]
    axes.invert_yaxis()
    axes.grid(visible=False, axis="y")
    axes.set_xlabel("mean emulated time a step (s)")
    axes.set_xlim(0, max(left, default=0.0) * 1.02 or 1.0)
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3, fontsize=8)
    return Plot("Time of a step", style.data_uri(figure), "Where a worker's step goes, mean over all workers.")


def cpu(summary: Summary, _found: Traces) -> Plot:
    """CPU use of each node as a share of its own cap."""
    figure, (axes,) = style.panels(9.4, 2.6)
    _bars(axes, summary, lambda node: 100 * node["cpu"])
    axes.set_ylabel("CPU (% of the node's cap)")
    what = "measured by the node's cgroup" if _measured(summary) else "as charged by the simulator's model"
    return Plot("CPU per node", style.data_uri(figure), f"CPU use of each node, {what}; first repeat.", wide=True)


def traffic(summary: Summary, _found: Traces) -> Plot:
    """Bytes that each node sent, and below it received."""
    figure, (sent, received) = style.panels(9.4, 4.2, rows=2)
    for axes, key, label in ((sent, "sent_bytes", "sent (MB)"), (received, "received_bytes", "received (MB)")):
        _bars(axes, summary, lambda node, key=key: node[key] / 1e6)  # type: ignore[misc]
        axes.set_yscale("symlog", linthresh=1.0)
        axes.set_ylim(bottom=0)
        axes.set_ylabel(label)
    sent.tick_params(labelbottom=False)
    received.get_legend().remove()  # type: ignore[union-attr]
    what = "IP bytes counted on its links" if _measured(summary) else "message bytes"
    caption = f"Bytes sent and received by each node (log scale), {what}; first repeat."
    return Plot("Traffic per node", style.data_uri(figure), caption, wide=True)


def _measured(summary: Summary) -> bool:
    return any(node["measured"] for item in summary["variants"].values() for node in item["repeats"][0]["nodes"])


def _bars(axes: Axes, summary: Summary, value: Callable[[Mapping[str, Any]], float]) -> None:
    variants = summary["variants"]
    width = 0.8 / len(variants)
    for number, (name, item) in enumerate(variants.items()):
        nodes = item["repeats"][0]["nodes"]
        places = [place - 0.4 + width * (number + 0.5) for place in range(len(nodes))]
        axes.bar(
            places, [value(node) for node in nodes], width * 0.92, color=style.colour(number),
            label=name, hatch=style.hatch(number), edgecolor="white", linewidth=0,
        )  # fmt: skip
        axes.set_xticks(range(len(nodes)), [node["node"] for node in nodes], rotation=30 if len(nodes) > 8 else 0)
    axes.grid(visible=False, axis="x")
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=len(variants), fontsize=8)
