"""A lab small enough for every test of the command line: a server with a program of its own, and two workers."""

from __future__ import annotations

from pathlib import Path

TOPOLOGY = """
name: NAME
nodes:
  server: {device: rpi-4, command: [python3, -m, http.server, "8000"], restart: always}
  worker: {device: rpi-4, count: 2}
  hub: {kind: switch}
links:
  - {from: "*", to: hub, rate: 50 Mbit, delay: 5 ms}
"""


def topology(directory: Path, name: str) -> Path:
    """Its topology file, as a lab called `name`."""
    path = directory / f"{name}.yaml"
    path.write_text(TOPOLOGY.replace("NAME", name))
    return path
