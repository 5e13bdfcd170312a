"""A run directory written by hand: what an experiment leaves, with figures that tests can work out on paper."""

from __future__ import annotations

import json
from ipaddress import IPv4Address
from typing import TYPE_CHECKING, Any

from emulator.core.plan import Endpoint, Impairment, LinkPlan, NodePlan, Plan
from emulator.core.record import encode
from emulator.core.units import Delay, Rate, Share
from emulator.results import store

if TYPE_CHECKING:
    from pathlib import Path

    from emulator.results.store import Run

HOST = {"cpu": "a CPU", "cores": 2, "memory": 8_000_000_000, "kernel": "6.1", "versions": {"python": "3.11"}}


def plan(workers: int = 2, time_scale: float = 0.2) -> Plan:
    """A server and some workers, each on a cable of its own to the server."""
    names = [f"worker-{number}" for number in range(1, workers + 1)]
    nodes = [NodePlan("server", role="parameter_server", host_cpus=Share(2), address=IPv4Address("10.0.0.1"))]
    nodes += [NodePlan(name, role="worker", host_cpus=Share(0.5), address=IPv4Address("10.0.0.2")) for name in names]
    way = Impairment(rate=Rate(20e6), delay=Delay(0.01))
    links = [
        LinkPlan(f"{name}--server", Endpoint(name, "eth0"), Endpoint("server", f"eth{number}"), way, way)
        for number, name in enumerate(names)
    ]
    return Plan("tiny", tuple(nodes), tuple(links), time_scale=time_scale, seed=7, notes=("a note of the plan",))


def variant(name: str, exchange: str = "asgd", learning_rate: float = 0.02) -> dict[str, Any]:
    return {
        "name": name,
        "exchange": exchange,
        "compressor": "none",
        "learning_rate": learning_rate,
        "compression": 0.01,
        "options": {},
    }


def experiment(*variants: dict[str, Any], repeats: int = 1) -> dict[str, Any]:
    return {
        "name": "made",
        "topology": "tiny.yaml",
        "workload": {"model": "softmax", "dataset": "synthetic-mnist", "batch": 10},
        "variants": list(variants),
        "baseline": "asgd",
        "budget": 60.0,
        "evaluate_every": 10.0,
        "time_scale": 0.2,
        "seed": 7,
        "repeats": repeats,
    }


def run(root: Path, *variants: dict[str, Any], repeats: int = 1, time_scale: float = 0.2) -> Run:
    """An empty run with its plan and experiment, in state "running"."""
    made = store.create(root, "made", 7)
    made.write("experiment.json", experiment(*variants, repeats=repeats))
    made.write_text("plan.json", plan(time_scale=time_scale).to_json())
    made.update(engine="emulation", runtime="embedded", link_driver="relay", host=HOST, notes=[], admission="10 %")
    return made


def server_records(
    accuracies: list[float], push: int, header: int = 100, staleness: int = 1, t0: float = 1.0, stop: bool = True
) -> list[str]:
    """One update and one evaluation each 10 s; every push has `push` payload bytes."""
    lines = [encode(t0, "server", "budget_started", {})]
    for number, accuracy in enumerate(accuracies, 1):
        t = t0 + 10 * number
        sizes = {"payload_bytes": push, "message_bytes": push + header}
        fields = {"n": number, "worker": "worker-1", "staleness": staleness, "sigma_mean": 0.5}
        lines.append(encode(t - 1, "server", "update", fields | sizes))
        lines.append(
            encode(t - 1, "server", "pull", {"worker": "worker-1", "payload_bytes": 1000, "message_bytes": 1050})
        )
        lines.append(encode(t - 2, "worker-1", "step", {"pull_s": 2.0, "compute_s": 1.0, "push_s": 3.0, "loss": 0.5}))
        totals = {"payload_bytes_to_server": push * number, "message_bytes_to_server": (push + header) * number}
        seen = {"updates": number, "accuracy": accuracy, "loss": 1 - accuracy, "snapshot_t": t}
        lines.append(encode(t, "evaluator", "evaluation", seen | totals))
    if stop:
        last = t0 + 10 * len(accuracies)
        lines.append(encode(last, "server", "stop", {"reason": "budget", "updates": len(accuracies)}))
    return lines


def lab_records(busy: float = 0.5, **changes: Any) -> list[str]:
    """One sample of the controller, as a lab gives it."""
    usage = {
        "cpu_s": 1.0, "real_s": 4.0, "cpu_share": 0.5, "throttled_s": 0.1, "periods": 100, "throttled_periods": 25,
        "memory": 10_000_000, "memory_peak": 20_000_000, "shared": 5_000_000, "oom_kills": 0, "running": True,
    }  # fmt: skip
    traffic = {"a_to_b_bytes": 300, "b_to_a_bytes": 700, "packets": 10, "lost": 1, "overflowed": 2, "unasked": 0}
    health = {"alive": True, "priority": "fifo", "restarts": 0, "lateness_p50": 0.0001, "lateness_p99": 0.0002}
    lines = [encode(20, name, "usage", usage | changes) for name in ("server", "worker-1", "worker-2")]
    lines += [
        encode(20, "controller", "traffic", {"link": f"worker-{number}--server"} | traffic | _only(changes, traffic))
        for number in (1, 2)
    ]
    lines.append(encode(20, "controller", "host", {"busy": busy, "background": 0.1}))
    lines.append(encode(20, "controller", "health", health | _only(changes, health)))
    return lines


def _only(changes: dict[str, Any], known: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in changes.items() if key in known}


def write(made: Run, name: str, lines: list[str], repeat: int = 0, file: str = "all") -> None:
    """Put record lines into a repeat of a variant."""
    directory = made.directory / name / str(repeat)
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / f"{file}.jsonl").open("a", encoding="utf-8") as out:
        out.writelines(line + "\n" for line in lines)


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
