"""What a person sees while an experiment runs: a live table on a terminal, plain lines elsewhere. All on stderr."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from emulator.core.clock import RealClock
from emulator.results.numbers import DASH, percent, size

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from types import TracebackType

    from rich.console import RenderableType


class Watcher(Protocol):
    """Told of everything that happens; `note` is a sentence for the user."""

    def note(self, text: str) -> None: ...

    def begin(self, variant: str, repeat: int, budget: float) -> None: ...

    def record(self, item: dict[str, Any]) -> None: ...

    def evaluating(self, left: int) -> None: ...

    def end(self) -> None: ...


class Silent:
    """For Python callers: says nothing."""

    def note(self, text: str) -> None:
        pass

    def begin(self, variant: str, repeat: int, budget: float) -> None:
        pass

    def record(self, item: dict[str, Any]) -> None:
        pass

    def evaluating(self, left: int) -> None:
        pass

    def end(self) -> None:
        pass


@dataclass
class Row:
    """What is known of one variant and repeat so far."""

    variant: str
    repeat: int
    budget: float
    t0: float | None = None
    t: float = 0.0
    updates: int = 0
    payload: int = 0
    staleness: float = 0.0
    accuracy: float | None = None
    backlog: int = 0
    ended: bool = False

    def take(self, item: dict[str, Any]) -> None:
        kind = item["kind"]
        if kind != "evaluation":  # an evaluation bears the time of its snapshot, not now
            self.t = max(self.t, float(item["t"]))
        if kind == "budget_started":
            self.t0 = float(item["t"])
        elif kind == "update":
            self.updates += 1
            self.payload += int(item["payload_bytes"])
            # An average over about the last hundred updates.
            self.staleness += (float(item["staleness"]) - self.staleness) / min(self.updates, 100)
        elif kind == "evaluation":
            self.accuracy = float(item["accuracy"])

    @property
    def left(self) -> float:
        """Emulated seconds of the budget that are left."""
        return self.budget if self.t0 is None else max(0.0, self.budget - (self.t - self.t0))

    def status(self) -> str:
        if self.ended:
            return "done"
        if self.backlog:
            return f"evaluating, {self.backlog} left"
        return "starting" if self.t0 is None else f"{self.left:.0f} s left"

    def cells(self) -> tuple[str, ...]:
        stale = f"{self.staleness:.1f}" if self.updates else DASH
        return (self.label, percent(self.accuracy), f"{self.updates:,}", size(self.payload), stale, self.status())

    @property
    def label(self) -> str:
        return self.variant if self.repeat == 0 else f"{self.variant} #{self.repeat + 1}"


class Lines:
    """A plain line at each evaluation, but at most one every few real seconds."""

    every = 5.0

    def __init__(self) -> None:
        self._clock, self._said, self._row = RealClock(), 0.0, Row("", 0, 0.0)

    def note(self, text: str) -> None:
        print(text, file=sys.stderr, flush=True)  # noqa: T201 - this is the command's talk

    def begin(self, variant: str, repeat: int, budget: float) -> None:
        self._row, self._said = Row(variant, repeat, budget), self._clock.now()

    def record(self, item: dict[str, Any]) -> None:
        self._row.take(item)
        if item["kind"] == "evaluation" and self._clock.now() - self._said >= self.every:
            self._say()

    def evaluating(self, left: int) -> None:
        self._row.backlog = left

    def end(self) -> None:
        self._row.ended = True
        self._say()

    def _say(self) -> None:
        self._said = self._clock.now()
        label, accuracy, updates, bytes_, stale, status = self._row.cells()
        self.note(f"{label}: accuracy {accuracy}, {updates} updates, {bytes_} to server, staleness {stale}, {status}")


class Board:
    """A live table, one line for each variant and repeat. Use with `with`."""

    every = 0.25

    def __init__(self) -> None:
        from rich.console import Console
        from rich.live import Live

        self._rows: list[Row] = []
        self._clock, self._drawn = RealClock(), 0.0
        # Drawn from here, not from a thread of its own: this process forks nodes.
        self._live = Live(console=Console(stderr=True), get_renderable=self._table, auto_refresh=False)

    def __enter__(self) -> Board:
        self._live.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.__exit__(kind, error, trace)

    def note(self, text: str) -> None:
        self._live.console.print(text, markup=False, highlight=False)

    def begin(self, variant: str, repeat: int, budget: float) -> None:
        self._rows.append(Row(variant, repeat, budget))
        self._draw(at_once=True)

    def record(self, item: dict[str, Any]) -> None:
        self._rows[-1].take(item)
        self._draw()

    def evaluating(self, left: int) -> None:
        self._rows[-1].backlog = left
        self._draw()

    def end(self) -> None:
        self._rows[-1].ended = True
        self._draw(at_once=True)

    def _draw(self, at_once: bool = False) -> None:
        now = self._clock.now()
        if at_once or now - self._drawn >= self.every:
            self._drawn = now
            self._live.refresh()

    def _table(self) -> RenderableType:
        from rich.table import Table

        if not self._rows:
            return ""
        table = Table(box=None, pad_edge=False, header_style="bold")
        for title in ("variant", "accuracy", "updates", "bytes to server", "staleness", "time"):
            table.add_column(title, justify="left" if title in ("variant", "time") else "right", no_wrap=True)
        for row in self._rows:
            table.add_row(*row.cells())
        return table


def watching() -> AbstractContextManager[Watcher]:
    """A live table where stderr is a terminal, else plain lines."""
    return Board() if sys.stderr.isatty() else nullcontext(Lines())
