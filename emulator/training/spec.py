"""What a role is told: plain data, so that it travels as JSON into a node or stays in the simulator."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class Workload:
    """What is trained. `model` and `dataset` are names of an entry point or `path.py:Name`.

    `sharding`: "contiguous" (`shards` parts in order, the workers take equal runs of them), "iid", or "dirichlet"
    (by label, with concentration `alpha`).
    """

    model: str = "mnist-cnn"
    dataset: str = "mnist"
    batch: int = 10
    sharding: str = "contiguous"
    shards: int = 1200
    alpha: float = 0.5
    standardize: bool = True
    options: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Variant:
    """How it is trained: exchange and compressor by name or `path.py:Name`, with their options.

    Compressor "none" = the exchange's own choice: dense for asgd, top-k for comp-asgd and adacomp.
    """

    name: str
    exchange: str = "asgd"
    compressor: str = "none"
    learning_rate: float = 0.1
    compression: float = 0.01
    options: dict[str, Any] = field(default_factory=dict)


#: so many evaluations at the end make the final accuracy
LAST = 5


@dataclass(frozen=True)
class RoleSpec:
    """One role on one node. `budget` (emulated seconds) starts at the first pull; `max_updates` ends a run early.

    `evaluate_every` is emulated seconds between snapshots, `evaluate_last` those between the last `LAST` of them
    (0 = the same), whose mean is the run's final accuracy. `data_directory` is a path of the host, readable in
    the node. `index` counts the workers from 0. `addresses` maps each node with a role to its address.

    `pace` is for a node whose processor is emulated: emulated seconds of the device for each flop charged, to which
    computing is stretched (0 = it takes what it takes). With `save_parameters` the server's last ones are kept.
    """

    node: str
    role: str
    workload: Workload
    variant: Variant
    server: str
    workers: tuple[str, ...]
    index: int = 0
    budget: float = 60.0
    max_updates: int | None = None
    evaluate_every: float = 10.0
    evaluate_last: float = 0.0
    seed: int = 0
    time_scale: float = 1.0
    threads: int = 1
    gflops: float = 1.0
    data_directory: str = ""
    addresses: tuple[tuple[str, str], ...] = ()
    port: int = 5555
    run_id: str = ""
    pace: float = 0.0
    save_parameters: bool = False

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @staticmethod
    def from_json(text: str) -> RoleSpec:
        raw = json.loads(text)
        return RoleSpec(
            **raw
            | {
                "workload": Workload(**raw["workload"]),
                "variant": Variant(**raw["variant"]),
                "workers": tuple(raw["workers"]),
                "addresses": tuple((node, address) for node, address in raw["addresses"]),
            }
        )
