"""The controller's own records of a lab: what nodes and links used, and how busy the host was.

Kinds, all counted from the start of this repeat and written to controller.jsonl:
"usage" (node = the node): cpu_s and real_s (host seconds), cpu_share (of the node's cap), throttled_s, periods,
throttled_periods, memory, memory_peak, shared (bytes), oom_kills, running;
"traffic": link, a_to_b_bytes, b_to_a_bytes (IP bytes), packets, lost, overflowed, unasked;
"health": the link driver's; "host": busy, background (shares of all cores since the last record);
"overload" (node = the node that suffered, or the controller): cause, value, limit (in one unit), what, fix, and since
(emulated time at which the window that was judged began): see `emulator.lab.overload`.
"""

from __future__ import annotations

import os
from dataclasses import astuple, fields
from typing import TYPE_CHECKING, Any

from emulator.core import record
from emulator.core.clock import RealClock
from emulator.core.errors import DegradedError
from emulator.core.words import out_of_memory
from emulator.experiment.host import BusyMeter
from emulator.lab import overload
from emulator.links.base import DirectionStatistics

if TYPE_CHECKING:
    from pathlib import Path

    from emulator.core.plan import NodePlan
    from emulator.lab import Lab, LabStats
    from emulator.runtimes.base import Usage

#: real seconds between samples
INTERVAL = 1.0

NODE = "controller"


class Sampler:
    """Samples one lab over one repeat. Call `tick(t)` with emulated time as often as one likes, `close` at the end.

    The host is judged from `begin` on: what kept it while the roles started is not held against the run.
    """

    def __init__(self, lab: Lab, out: Path, strict: bool = False) -> None:
        """`strict` raises DegradedError at the first overload."""
        self._lab, self._groups, self._strict = lab, overload.groups(lab), strict
        self._fd = os.open(out / f"{NODE}.jsonl", os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
        self._clock = RealClock()
        self._first = lab.stats()
        self._start = self._last = self._clock.now()
        self._busy = BusyMeter()
        self._finished = False
        self._monitor: overload.Monitor | None = None

    def begin(self) -> None:
        """The work that is measured begins."""
        self._monitor = overload.Monitor(self._lab.plan, INTERVAL)
        self._monitor.take(overload.read(self._lab, self._lab.stats(), self._groups))

    def tick(self, t: float) -> None:
        """Write a sample if it is time for one."""
        if not self._finished and self._clock.now() - self._last >= INTERVAL:
            self.sample(t)

    def finish(self, t: float) -> None:
        """Write the last sample: the time after this does not count."""
        finished, self._finished = self._finished, True
        if not finished:
            self.sample(t, last=True)

    def sample(self, t: float, *, last: bool = False) -> None:
        """Write a sample now, at emulated time `t`; the `last` one is judged however short the run was."""
        self._last = self._clock.now()
        stats = self._lab.stats()
        for node in self._lab.plan.machines:
            if node.role and node.name in stats.usage:
                self._write(t, node.name, "usage", self._usage(node, stats.usage[node.name]))
        for link in stats.cables:
            self._write(t, NODE, "traffic", self._traffic(link, stats))
        busy, background = self._busy.reading()
        self._write(t, NODE, "host", {"busy": round(busy, 4), "background": round(background, 4)})
        health = stats.health
        late = {key: getattr(health, key) for key in ("lateness_p50", "lateness_p99")}
        self._write(
            t,
            NODE,
            "health",
            {"alive": health.alive, "priority": health.priority, "restarts": health.restarts}
            | {key: None if value is None else float(value) for key, value in late.items()},
        )
        if self._monitor is not None:
            self._judge(t, self._monitor, overload.read(self._lab, stats, self._groups), last)

    def out_of_memory(self) -> str:
        """Which nodes ran out of memory since the start, a sentence; "" = none did."""
        told = []
        now = self._lab.stats().usage
        for node in self._lab.plan.machines:
            usage, first = now.get(node.name), self._first.usage.get(node.name)
            if usage and first and (kills := usage.oom_kills - first.oom_kills) > 0:
                told.append(out_of_memory(node.name, kills, usage.memory_peak, node.memory))
        return "; ".join(told)

    def close(self) -> None:
        os.close(self._fd)

    def _judge(self, t: float, monitor: overload.Monitor, reading: overload.Reading, last: bool) -> None:
        found = monitor.take(reading, last=last)
        for one in found:
            since = max(0.0, t - monitor.length / self._lab.plan.time_scale)
            fields = one._asdict() | {"since": round(since, 6)}
            self._write(t, fields.pop("node") or NODE, "overload", fields)
        if found and self._strict:
            raise strictly(found[0], t)

    def _write(self, t: float, node: str, kind: str, values: dict[str, Any]) -> None:
        os.write(self._fd, (record.encode(t, node, kind, values) + "\n").encode())

    def _usage(self, node: NodePlan, now: Usage) -> dict[str, Any]:
        first = self._first.usage[node.name]
        real, cpu = self._last - self._start, float(now.cpu) - float(first.cpu)
        return {
            "cpu_s": round(cpu, 6),
            "real_s": round(real, 6),
            "cpu_share": round(cpu / (real * node.quota), 6) if real and node.host_cpus else 0.0,
            "throttled_s": round(float(now.throttled) - float(first.throttled), 6),
            "periods": now.periods - first.periods,
            "throttled_periods": now.throttled_periods - first.throttled_periods,
            "memory": int(now.memory),
            "memory_peak": int(now.memory_peak),
            "shared": int(now.shared),
            "oom_kills": now.oom_kills - first.oom_kills,
            "running": now.running,
        }

    def _traffic(self, link: str, stats: LabStats) -> dict[str, Any]:
        now, first = stats.cables[link], self._first.cables.get(link)
        ways = {
            name: _less(getattr(now, name), getattr(first, name) if first else DirectionStatistics())
            for name in ("a_to_b", "b_to_a")
        }
        both = list(ways.values())
        return {
            "link": link,
            **{f"{name}_bytes": way.bytes for name, way in ways.items()},
            **{key: sum(getattr(way, key) for way in both) for key in ("packets", "lost", "overflowed", "unasked")},
        }


def strictly(found: overload.Overload, t: float) -> DegradedError:
    """What `--strict` stops a run with."""
    place = f"{found.node}: " if found.node else ""
    return DegradedError(
        f"stopped at {t:.1f} s (emulated), since the host does not keep up: {place}{found.what}",
        fix=f"{found.fix}; without --strict the run goes on, marked",
    )


def _less(now: DirectionStatistics, first: DirectionStatistics) -> DirectionStatistics:
    """Counters since `first`; a relay that was restarted counts from zero again."""
    names = [field.name for field in fields(DirectionStatistics)]
    pairs = zip(names, astuple(now), astuple(first), strict=True)
    return DirectionStatistics(**{name: a - b if a >= b else a for name, a, b in pairs})
