"""The relay process: a loop over the lanes of all cables, and the answers to what is asked of it."""

from __future__ import annotations

import gc
import json
import os
import time
from functools import partial
from typing import TYPE_CHECKING, Any

from emulator.core.rng import light
from emulator.links.relay import control
from emulator.links.relay.counters import Counters
from emulator.links.relay.lane import Lane, Setting
from emulator.links.relay.loop import Loop
from emulator.links.relay.priority import raise_priority

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

CABLES = "cables.jsonl"


def read_settings(directory: Path) -> dict[str, dict[str, Any]]:
    """Cables by name, in plugging order, with their latest impairments (see `emulator.links.state`)."""
    cables: dict[str, dict[str, Any]] = {}
    for line in (directory / CABLES).read_text().splitlines():
        raw = json.loads(line)
        cables[raw["name"]] = cables.get(raw["name"], {}) | raw
    return cables


def make_lanes(cables: Mapping[str, dict[str, Any]], taps: Sequence[int], life: int) -> dict[str, tuple[Lane, Lane]]:
    """Both lanes of each cable; `taps` are the descriptors of its ends a and b, cable by cable."""
    lanes = {}
    for index, (name, raw) in enumerate(cables.items()):
        a, b = taps[2 * index : 2 * index + 2]
        lanes[name] = (
            Lane(a, b, Setting.read(raw["a_to_b"]), raw["mtu"], light(raw.get("seed", 0), name, "a_to_b", life)),
            Lane(b, a, Setting.read(raw["b_to_a"]), raw["mtu"], light(raw.get("seed", 0), name, "b_to_a", life)),
        )
    return lanes


class Server:
    """One life of the relay. `restarts` counts the lives before it, and makes each draw other random numbers."""

    def __init__(self, directory: Path, taps: Sequence[int], listener: socket.socket, restarts: int) -> None:
        self._directory = directory
        self._listener = listener
        self._restarts = restarts
        settings = read_settings(directory)
        self._lanes = make_lanes(settings, taps, restarts)
        flat = [lane for pair in self._lanes.values() for lane in pair]
        self._counters = Counters(directory, flat)
        self._loop = Loop(flat, self._counters.write)
        self._loop.watch(listener.fileno(), self._accept)
        self._watch_nodes(settings)
        self._priority = raise_priority()
        self._answers: Mapping[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
            "change": self._change,
            "sync": self._sync,
            "health": self._health,
            "shutdown": self._shutdown,
        }

    def _watch_nodes(self, cables: Mapping[str, dict[str, Any]]) -> None:
        """Let the lanes of each node fall silent when its first process ends.

        The TAPs, which we hold open, keep a dead container's namespace alive, and its kernel goes on answering pings.
        """
        of_node: dict[int, list[Lane]] = {}
        for name, raw in cables.items():
            for pid in {raw["a"].get("pid", 0), raw["b"].get("pid", 0)} - {0}:
                of_node.setdefault(pid, []).extend(self._lanes[name])
        for pid, lanes in of_node.items():
            try:
                handle = os.pidfd_open(pid)
            except ProcessLookupError:
                self._silence(lanes)
            else:
                self._loop.watch(handle, partial(self._died, handle, lanes))

    def _died(self, handle: int, lanes: Sequence[Lane]) -> None:
        self._loop.forget(handle)
        os.close(handle)
        self._silence(lanes)

    def _silence(self, lanes: Sequence[Lane]) -> None:
        for lane in lanes:
            lane.silence()
        self._loop.reschedule()

    def run(self) -> None:
        """Move packets until asked to shut down. Collecting garbage would stall every link, and none is made."""
        gc.collect()
        gc.freeze()
        gc.disable()
        self._loop.run()
        self._counters.write()

    def _accept(self) -> None:
        try:
            connection, _ = self._listener.accept()
        except BlockingIOError:
            return
        connection.setblocking(False)
        self._loop.watch(connection.fileno(), lambda: self._serve(connection))

    def _serve(self, connection: socket.socket) -> None:
        request = control.receive(connection)
        if request is None:
            self._loop.forget(connection.fileno())
            connection.close()
        elif request:
            control.answer(connection, self._answers[request["do"]](request))

    def _change(self, request: dict[str, Any]) -> dict[str, Any]:
        """Both directions at one moment. The file has the change before the lanes do: a restart loses none."""
        pair = self._lanes.get(request["name"])
        if pair is None:
            return {"error": "unknown"}
        try:
            self._append({key: request[key] for key in ("name", "a_to_b", "b_to_a")})
        except OSError as error:
            return {"error": error.strerror}
        now = time.monotonic()
        for lane, key in zip(pair, ("a_to_b", "b_to_a"), strict=True):
            lane.change(now, Setting.read(request[key]))
        self._loop.reschedule()
        return {}

    def _append(self, change: dict[str, Any]) -> None:
        descriptor = os.open(self._directory / CABLES, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
        try:
            os.write(descriptor, (json.dumps(change) + "\n").encode())
        finally:
            os.close(descriptor)

    def _sync(self, _request: dict[str, Any]) -> dict[str, Any]:
        self._counters.write()
        return {}

    def _health(self, _request: dict[str, Any]) -> dict[str, Any]:
        lateness = self._loop.lateness
        return {
            "pid": os.getpid(),
            "supervisor": os.getppid(),
            "priority": self._priority,
            "lateness_p50": lateness.percentile(0.50),
            "lateness_p99": lateness.percentile(0.99),
            "restarts": self._restarts,
            "trouble": {
                name: next(lane.trouble for lane in pair if lane.trouble)
                for name, pair in self._lanes.items()
                if any(lane.trouble for lane in pair)
            },
        }

    def _shutdown(self, _request: dict[str, Any]) -> dict[str, Any]:
        self._loop.running = False
        return {}
