"""The records of one repeat of one variant, read into what tables and figures need. All times are emulated seconds."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from emulator.core import record as records
from emulator.core.errors import ResultError
from emulator.training.spec import LAST

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

Record = dict[str, Any]


@dataclass(frozen=True)
class Evaluation:
    """Test accuracy (0 to 1) of the model as it was `t` after the first pull, and what the server had received."""

    t: float
    updates: int
    accuracy: float
    loss: float
    payload_bytes: int
    message_bytes: int


@dataclass
class Steps:
    """Sums over a worker's steps: emulated seconds that went to each part."""

    count: int = 0
    pull: float = 0.0
    compute: float = 0.0
    push: float = 0.0


@dataclass
class Paced:
    """Sums over a node's paced computations: emulated seconds of the device, and those that this host took for it."""

    count: int = 0
    overran: int = 0
    modelled: float = 0.0
    took: float = 0.0


@dataclass
class Trace:
    """One repeat. `t0` is the first pull, where the budget starts; `seconds` what of the budget was used.

    `usage` is each node's last record, counted from the repeat's start; `usage_before` its last one before `t0`.
    """

    t0: float = 0.0
    end: float | None = None
    last: float = 0.0
    stop_reason: str | None = None
    stop_updates: int = 0
    updates: int = 0
    payload_to_server: int = 0
    message_to_server: int = 0
    payload_applied: int = 0
    message_applied: int = 0
    payload_from_server: int = 0
    message_from_server: int = 0
    dropped: Counter[str] = field(default_factory=Counter)
    lost: int = 0
    died: list[Record] = field(default_factory=list)
    staleness: Counter[int] = field(default_factory=Counter)
    sigma: float = 0.0
    evaluations: list[Evaluation] = field(default_factory=list)
    steps: defaultdict[str, Steps] = field(default_factory=lambda: defaultdict(Steps))
    paced: defaultdict[str, Paced] = field(default_factory=lambda: defaultdict(Paced))
    sent: Counter[str] = field(default_factory=Counter)
    received: Counter[str] = field(default_factory=Counter)
    usage: dict[str, Record] = field(default_factory=dict)
    usage_before: dict[str, Record] = field(default_factory=dict)
    traffic: dict[str, Record] = field(default_factory=dict)
    host: list[Record] = field(default_factory=list)
    health: Record | None = None
    overloads: list[Record] = field(default_factory=list)

    @property
    def seconds(self) -> float:
        """Emulated seconds from the first pull to the server's stop (or to the last record of a run cut short)."""
        return max(0.0, (self.last if self.end is None else self.end) - self.t0)

    @property
    def final_accuracy(self) -> float | None:
        """Mean of the last five evaluations (of as many as there are); None without any.

        A model that has had no update yet counts only where there is no other.
        """
        trained = [item for item in self.evaluations if item.updates] or self.evaluations
        tail = [item.accuracy for item in trained[-LAST:]]
        return sum(tail) / len(tail) if tail else None

    @property
    def complete(self) -> bool:
        """The server stopped by itself, and the model that it ended with was evaluated."""
        return self.end is not None and bool(self.evaluations) and self.evaluations[-1].updates >= self.stop_updates


def read(directory: Path) -> Trace:
    """Read all records of a repeat; raises ResultError for a damaged file."""
    trace = Trace()
    items = [(item, path) for path in sorted(directory.glob("*.jsonl")) for item in records.read(path)]
    items.sort(key=lambda pair: float(pair[0]["t"]))
    trace.t0 = next((float(item["t"]) for item, _ in items if item["kind"] == "budget_started"), 0.0)
    for item, path in items:
        trace.last = max(trace.last, float(item["t"]))
        handler = _HANDLERS.get(item["kind"])
        if handler is not None:
            _handle(handler, trace, item, path)
    return trace


def _handle(handler: Callable[[Trace, Record], None], trace: Trace, item: Record, path: Path) -> None:
    """Handlers only take fields out of a record: where one fails, a field is missing or no number."""
    try:
        handler(trace, item)
    except (KeyError, TypeError, ValueError) as error:
        why = f"has no `{error.args[0]}`" if isinstance(error, KeyError) else f"has a damaged field ({error})"
        raise ResultError(
            f"the {item['kind']!r} record at {item['t']:g} s {why}",
            where=str(path),
            fix="remove the line or the damaged run",
        ) from error


def _update(trace: Trace, item: Record) -> None:
    trace.updates += 1
    trace.payload_applied += int(item["payload_bytes"])
    trace.message_applied += int(item["message_bytes"])
    _arrived(trace, item)
    trace.staleness[int(item["staleness"])] += 1
    trace.sigma += float(item.get("sigma_mean") or 0.0)


def _arrived(trace: Trace, item: Record) -> None:
    """A push used the links whether it was applied or dropped."""
    trace.payload_to_server += int(item.get("payload_bytes", 0))
    message = int(item.get("message_bytes", 0))
    trace.message_to_server += message
    trace.sent[str(item.get("worker"))] += message
    trace.received[str(item["node"])] += message


def _dropped(trace: Trace, item: Record) -> None:
    trace.dropped[str(item.get("reason", "unknown"))] += 1
    _arrived(trace, item)


def _pull(trace: Trace, item: Record) -> None:
    trace.payload_from_server += int(item["payload_bytes"])
    message = int(item["message_bytes"])
    trace.message_from_server += message
    trace.sent[str(item["node"])] += message
    trace.received[str(item.get("worker"))] += message


def _step(trace: Trace, item: Record) -> None:
    steps = trace.steps[str(item["node"])]
    steps.count += 1
    steps.pull += float(item["pull_s"])
    steps.compute += float(item["compute_s"])
    steps.push += float(item["push_s"])


def _paced(trace: Trace, item: Record) -> None:
    paced = trace.paced[str(item["node"])]
    paced.count += 1
    paced.overran += float(item["took_s"]) > float(item["modelled_s"])
    paced.modelled += float(item["modelled_s"])
    paced.took += float(item["took_s"])


def _evaluation(trace: Trace, item: Record) -> None:
    trace.evaluations.append(
        Evaluation(
            t=float(item["snapshot_t"] if "snapshot_t" in item else item["t"]) - trace.t0,
            updates=int(item["updates"]),
            accuracy=float(item["accuracy"]),
            loss=float(item["loss"]),
            payload_bytes=int(item["payload_bytes_to_server"]),
            message_bytes=int(item["message_bytes_to_server"]),
        )
    )


def _usage(trace: Trace, item: Record) -> None:
    node = str(item["node"])
    trace.usage[node] = item
    if float(item["t"]) <= trace.t0:
        trace.usage_before[node] = item


def _stop(trace: Trace, item: Record) -> None:
    if "updates" in item:  # the server's, not a worker's
        trace.end = float(item["t"])
        trace.stop_updates = int(item["updates"])
        trace.stop_reason = str(item.get("reason", ""))


def _lost(trace: Trace, _item: Record) -> None:
    trace.lost += 1


def _overload(trace: Trace, item: Record) -> None:
    needed = {"cause": str, "what": str, "fix": str, "value": float, "since": float}
    trace.overloads.append(item | {key: kind(item[key]) for key, kind in needed.items()})


_HANDLERS: dict[str, Callable[[Trace, Record], None]] = {
    "update": _update,
    "dropped": _dropped,
    "pull": _pull,
    "step": _step,
    "paced": _paced,
    "evaluation": _evaluation,
    "stop": _stop,
    "lost": _lost,
    "died": lambda trace, item: trace.died.append(item),
    "usage": _usage,
    "traffic": lambda trace, item: trace.traffic.update({str(item["link"]): item}),
    "host": lambda trace, item: trace.host.append(item),
    "overload": _overload,
    "health": lambda trace, item: setattr(trace, "health", item),
}
