"""Small topology and experiment files for tests, and what they give."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

TOPOLOGY = """\
name: trio
nodes:
  server: {device: server, role: parameter_server}
  hub: {kind: switch}
  worker: {device: rpi-4, role: worker, count: 2}
links:
  - {from: server, to: hub, rate: 100 Mbit, delay: 1 ms}
  - {from: worker-*, to: hub, rate: 10 Mbit, delay: 5 ms}
"""

EXPERIMENT = """\
description: a test
topology: trio.yaml
workload:
  model: softmax
  dataset: synthetic-mnist
  sharding: iid
variants:
  asgd:
    exchange: asgd
    learning_rate: 0.001
  adacomp:
    exchange: adacomp
    c: 0.01
    learning_rate: 0.005
budget: 1 s
evaluate_every: 0.1 s
seed: 3
"""


def write(directory: Path, experiment: str = EXPERIMENT, topology: str = TOPOLOGY) -> Path:
    """Both files; the experiment's path."""
    (directory / "trio.yaml").write_text(topology, encoding="utf-8")
    path = directory / "small.yaml"
    path.write_text(experiment, encoding="utf-8")
    return path


def changed(old: str, new: str) -> str:
    """The experiment with a piece of its text replaced; the piece must be there."""
    assert old in EXPERIMENT
    return EXPERIMENT.replace(old, new, 1)
