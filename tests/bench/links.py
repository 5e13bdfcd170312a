"""How true the links are, driver by driver: round trips, one TCP flow's rate, loss, and what carrying wan-10 costs.

Lateness of a busy host is in these figures: run it on an idle one, and compare the medians. The load is that of the
shipped experiment at its worst: all ten workers of wan-10 pull at once, at its time scale.
"""

from __future__ import annotations

import os
import socket
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from emulator import links
from emulator.core.plan import Impairment, Plan
from emulator.core.units import Delay, Rate, Share, Size
from emulator.links.netns import inside
from emulator.links.ping import ping
from emulator.links.relay import process
from emulator.topology import load_plan
from tests.conformance.bare_lab import BareLab, star, tcp_flow, unique

WAN = Path(__file__).parents[2] / "topologies" / "wan-10.yaml"
TIME_SCALE = 0.2
#: rate in Mbit/s and one-way delay in ms of the flows; the last has 4 MB in flight
FLOWS = ((5, 10), (20, 10), (50, 20), (100, 20), (200, 10), (200, 80))
SECONDS = 8.0
#: IP bytes of a ping
PING = 76
SLOW_START = 3.0


def main() -> None:
    """Print one table for each driver that works here."""
    if os.geteuid() != 0:
        print("links: needs root (sudo make bench)")
        return
    for name in links.REAL:
        problems = links.driver(name).probe()
        if problems:
            print(f"links, {name}: not here: {problems[0]}")
            continue
        with tempfile.TemporaryDirectory() as directory:
            os.environ["EMU_STATE_DIR"] = directory
            print(f"links, {name}")
            round_trips(name)
            flows(name)
            loss(name)
            load(name)
            del os.environ["EMU_STATE_DIR"]


@contextmanager
def up(plan: Plan, driver: str) -> Iterator[BareLab]:
    """The plan's network for a while."""
    lab = BareLab(replace(plan, name=unique("bench")), links.driver(driver))
    try:
        yield lab
    finally:
        lab.close()


def round_trips(driver: str) -> None:
    """Medians of 50 pings between the server, the core and the workers of wan-10, against the plan."""
    plan = load_plan(WAN, time_scale=1.0)
    trip = {link.name: one_trip(link.a_to_b) + one_trip(link.b_to_a) for link in plan.links}
    server = trip["server--core"]
    pairs = [("server", f"worker-{n}", server + trip[f"worker-{n}--core"]) for n in (1, 4, 7, 9)]
    pairs.append(("worker-1", "worker-9", trip["worker-1--core"] + trip["worker-9--core"]))
    with up(plan, driver) as lab:
        for source, target, planned in pairs:
            trips = ping(lab.path(source), lab.address(target), 50, 0.02)
            heard = sorted(trip for trip in trips if trip is not None)
            error, allowed = statistics.median(heard) - planned, max(0.0005, 0.02 * planned)
            print(
                f"  round trip {source}, {target}: planned {planned * 1e3:.1f} ms, median {error * 1e3:+.2f} ms, "
                f"p95 {(heard[int(len(heard) * 0.95)] - planned) * 1e3:+.2f} ms (allowed {allowed * 1e3:.1f})"
            )


def one_trip(impairment: Impairment) -> float:
    """A ping's time on a direction: its own on the line, and the delay."""
    return PING * 8 / float(impairment.rate or float("inf")) + float(impairment.delay)


def flows(driver: str) -> None:
    """One TCP flow on one cable: its share of the rate, and its busiest second."""
    for mbit, ms in FLOWS:
        in_flight = mbit * 1e6 / 8 * 2 * ms / 1e3
        figures = Impairment(rate=Rate(mbit * 1e6), delay=Delay(ms / 1e3), queue=Size(max(64 << 10, in_flight)))
        with up(star("flow", [(figures, figures), (Impairment(), Impairment())]), driver) as lab:
            flow = tcp_flow(lab, "h0", "h1", SECONDS)
        excess = flow.busiest_second() - 1.01 * mbit * 1e6
        print(
            f"  one flow at {mbit} Mbit/s, {2 * ms} ms: {flow.rate(SLOW_START) / mbit / 1e4:.1f} % of the rate after "
            f"{SLOW_START:.0f} s, busiest second {flow.busiest_second() / mbit / 1e4:.2f} % "
            f"({'within' if excess <= 1500 * 8 else 'over'} 101 % + one MTU)"
        )


def loss(driver: str) -> None:
    """5,000 pings through 1 % loss one way; 99 of 100 honest runs lose 33 to 69."""
    lossy = Impairment(loss=Share(0.01))
    with up(star("loss", [(lossy, Impairment()), (Impairment(), Impairment())]), driver) as lab:
        lost = ping(lab.path("h0"), lab.address("h1"), 5000, 0.0005, timeout=0.5).count(None)
    print(f"  loss of 1 % over 5,000 pings: {lost} lost (33 to 69 is the 99 % interval)")


def load(driver: str) -> None:
    """All workers of wan-10 pull from the server at once: what arrives, and what it costs."""
    plan = load_plan(WAN, time_scale=TIME_SCALE)
    workers = [node.name for node in plan.nodes if node.name.startswith("worker")]
    with up(plan, driver) as lab:
        children = [child for name in workers for child in pull(lab, name)]
        time.sleep(SLOW_START)
        relay = process.running(lab.lab)[-1:]
        before, cpu, busy, start = arrived(lab), cpu_seconds(relay), host_busy(), time.monotonic()
        time.sleep(SECONDS - SLOW_START - 1)
        after, spent = arrived(lab), time.monotonic() - start
        used, others = cpu_seconds(relay) - cpu, host_busy() - busy
        health = lab.driver.health(lab.lab)
        for child in children:
            os.waitpid(child, 0)
    capacity = sum(float(link.b_to_a.rate or 0) / TIME_SCALE for link in plan.links if link.a.node in workers)
    print(
        f"  load of wan-10 at {TIME_SCALE}: {(after - before) * 8 / spent / 1e6:.0f} of {capacity / 1e6:.0f} Mbit/s, "
        f"relay {used / spent * 100:.0f} % of a core, host busy {others / spent * 100:.0f} % of {os.cpu_count()}00 %, "
        f"{health.priority or 'kernel'}, lateness p99 {health.lateness_p99 or 'not told'}"
    )


def pull(lab: BareLab, worker: str) -> tuple[int, int]:
    """A sink at the worker and a source at the server, a process each."""
    with inside(lab.path(worker)):
        server = socket.create_server((lab.address(worker), 7003))
    with inside(lab.path("server")):
        client = socket.socket()

    def sink() -> None:
        client.close()  # or the source's end would not end the connection
        peer, _ = server.accept()
        buffer = bytearray(1 << 18)
        while peer.recv_into(buffer):
            pass

    def source() -> None:
        client.connect((lab.address(worker), 7003))
        block, end = bytes(1 << 16), time.monotonic() + SECONDS
        while time.monotonic() < end:
            client.send(block)

    children = (fork(sink), fork(source))
    server.close()
    client.close()
    return children


def fork(work: Callable[[], None]) -> int:
    """Do `work` in a child."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            work()
            code = 0
        finally:
            os._exit(code)
    return child


def arrived(lab: BareLab) -> int:
    """IP bytes that the workers have been given."""
    counted = lab.driver.statistics(lab.lab)
    return sum(cable.b_to_a.bytes for name, cable in counted.items() if name.startswith("worker"))


def cpu_seconds(pids: list[int]) -> float:
    """User and system time of processes."""
    total = 0
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        total += int(fields[11]) + int(fields[12])
    return total / os.sysconf("SC_CLK_TCK")


def host_busy() -> float:
    """CPU seconds that the host has spent on anything."""
    fields = [int(field) for field in Path("/proc/stat").read_text().splitlines()[0].split()[1:]]
    return (sum(fields[:8]) - fields[3] - fields[4]) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main()
