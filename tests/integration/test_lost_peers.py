"""Who counts as lost, over a real wire: a cut line does, a slow line and a stopped process do not."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from emulator.core.enter import EnterToken
from emulator.core.record import read
from emulator.training.crew import Crew
from emulator.training.peer import TimeLimits
from emulator.training.spec import RoleSpec, Variant, Workload
from emulator.training.zygote import Zygote

pytestmark = pytest.mark.needs("root", "netns")
TOYS = Path(__file__).parent.parent / "toy_roles.py"
SCALE = 0.05
SILENCE = TimeLimits.of(SCALE).silence
_numbers = itertools.count()


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True)


@pytest.fixture
def wire() -> Iterator[str]:
    """Two network namespaces, `<name>s` and `<name>w`, with a cable between them."""
    name = f"emu-lost-{os.getpid()}-{next(_numbers)}"
    try:
        for side in "sw":
            _ip("netns", "add", name + side)
            _ip("-n", name + side, "link", "set", "lo", "up")
        _ip("-n", f"{name}s", "link", "add", "wire", "type", "veth", "peer", "wire", "netns", f"{name}w")
        for side, address in (("s", "10.201.0.1/24"), ("w", "10.201.0.2/24")):
            _ip("-n", name + side, "address", "add", address, "dev", "wire")
            _ip("-n", name + side, "link", "set", "wire", "up")
        yield name
    finally:
        for side in "sw":
            subprocess.run(["ip", "netns", "delete", name + side], check=False)


class Pair:
    """A server and a worker at the two ends of a wire."""

    def __init__(self, crew: Crew, out: Path, wire: str, worker: str) -> None:
        self.crew = crew
        self._out = out
        for node, role, side in (("server", "survive", "s"), ("a", worker, "w")):
            spec = RoleSpec(
                node=node,
                role=f"{TOYS}:{role}",
                workload=Workload(),
                variant=Variant("toy"),
                server="server",
                workers=("a",),
                time_scale=SCALE,
                addresses=(("server", "10.201.0.1"), ("a", "10.201.0.2")),
            )
            token = EnterToken(node, namespaces=(("net", f"/run/netns/{wire}{side}"),))
            crew.fork(node, token, {"job": "role", "spec": asdict(spec), "origin": time.monotonic()})

    @property
    def server_saw(self) -> list[dict[str, Any]]:
        return [item for item in read(self._out / "server.jsonl") if item["kind"] == "saw"]

    @property
    def losses(self) -> list[str]:
        return [item["reason"] for item in self.server_saw if "lost" in item]

    def until(self, done: Callable[[], bool], seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while not done():
            self.crew.step(0.05)
            logs = {path.name: path.read_text() for path in self._out.glob("*.log")}
            assert time.monotonic() < deadline, f"it did not come about; {self.server_saw[-3:]}; {logs}"

    def watch(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.crew.step(0.05)


@pytest.fixture(scope="module")
def zygote() -> Iterator[Zygote]:
    with Zygote(Workload(model="softmax", dataset="synthetic-mnist")) as warm:
        yield warm


def test_an_upload_longer_than_the_limit_is_no_loss(zygote: Zygote, wire: str, tmp_path: Path) -> None:
    # 1.7 MB at 1.2 Mbit/s: 11 s, more than twice the time after which an unanswered peer is given up.
    shaper = ("tbf", "rate", "1200kbit", "burst", "5kb", "latency", "300ms")
    _ip("netns", "exec", f"{wire}w", "tc", "qdisc", "add", "dev", "wire", "root", *shaper)
    with Crew(zygote, tmp_path, lambda _: None) as crew:
        pair = Pair(crew, tmp_path, wire, "upload")
        begun = time.monotonic()
        pair.until(lambda: "a" not in crew.running and "server" not in crew.running, 60.0)
        assert time.monotonic() - begun > 2 * SILENCE
        assert [item.get("message", item.get("lost")) for item in pair.server_saw] == ["push", "end"]
        assert crew.exits["a"].code == crew.exits["server"].code == 0


def test_a_cut_line_is_a_loss_and_a_mended_one_serves_again(zygote: Zygote, wire: str, tmp_path: Path) -> None:
    with Crew(zygote, tmp_path, lambda _: None) as crew:
        pair = Pair(crew, tmp_path, wire, "chatter")
        pair.until(lambda: len(pair.server_saw) > 3, 20.0)
        _ip("-n", f"{wire}w", "link", "set", "wire", "down")
        cut = time.monotonic()
        pair.until(lambda: bool(pair.losses), 5 * SILENCE)
        assert time.monotonic() - cut > SILENCE / 2
        assert pair.losses == [f"no answer for {SILENCE:.0f} s of real time"]
        _ip("-n", f"{wire}w", "link", "set", "wire", "up")
        pair.until(lambda: "message" in pair.server_saw[-1], 30.0)
        heard = len(pair.server_saw)
        pair.until(lambda: len(pair.server_saw) > heard + 3, 20.0)


def test_a_stopped_process_is_no_loss(zygote: Zygote, wire: str, tmp_path: Path) -> None:
    with Crew(zygote, tmp_path, lambda _: None) as crew:
        pair = Pair(crew, tmp_path, wire, "chatter")
        pair.until(lambda: len(pair.server_saw) > 3, 20.0)
        crew.signal(["a"], signal.SIGSTOP)
        pair.watch(2 * SILENCE)
        crew.signal(["a"], signal.SIGCONT)
        heard = len(pair.server_saw)
        pair.until(lambda: len(pair.server_saw) > heard + 3, 20.0)
        assert pair.losses == []
