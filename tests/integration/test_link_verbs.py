"""`emu link list`, `set`, `cut` and `heal` on a running lab, by whichever driver this kernel has."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.integration.traces import emu

pytestmark = pytest.mark.needs("root", "netns", "ping")
TOPOLOGY = """
time_scale: 2
nodes: {a: {}, b: {kind: router}, c: {}}
links:
  - {from: a, to: b, rate: 10 Mbit, delay: 10 ms, up: {loss: {share: 1 %, burst: 4}}, queue: 50 packets}
  - {from: b, to: c, delay: 5 ms}
"""


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("EMU_STATE_DIR", str(tmp_path / "state"))
    (tmp_path / "verbs.yaml").write_text(TOPOLOGY)
    emu("up", str(tmp_path / "verbs.yaml"), "--runtime", "embedded")
    yield "verbs"
    emu("down", "verbs", check=False)


def links(*words: str) -> dict[str, Any]:
    return {link["name"]: link for link in json.loads(emu("link", "list", *words, "--json").stdout)}


def answered(lab: str, count: int = 3) -> list[float]:
    """Round trips from a to c, in real milliseconds."""
    done = emu("exec", "--lab", lab, "a", "--", "ping", "-c", str(count), "-i", "0.1", "-W", "1", "c", check=False)
    return [float(found) for found in re.findall(r"time=([\d.]+)", done.stdout)]


def test_a_link_is_listed_set_cut_and_healed(lab: str) -> None:
    before = links(lab)
    assert list(before) == ["a--b", "b--c"]
    assert before["a--b"]["a_to_b"]["delay"] == pytest.approx(0.01), "in emulated time"
    said = emu("link", "list").stdout
    assert "a -> b: 10 Mbit, 10 ms, 1 % lost in bursts" in said and "b <-> c: unlimited, 5 ms" in said

    said = emu("link", "set", "a--b", "delay=40 ms", "up={loss: 0}").stdout
    assert said == "a--b\n  a <-> b: 10 Mbit, 40 ms\n"
    after = links(lab)
    assert after["b--c"] == before["b--c"]
    kept = ("rate", "queue", "queue_packets", "overhead")
    for way in ("a_to_b", "b_to_a"):
        assert [after["a--b"][way][key] for key in kept] == [before["a--b"][way][key] for key in kept]
        assert after["a--b"][way]["loss_model"] is None
    times = answered(lab)
    assert len(times) == 3 and 180 <= min(times) < 280, "four delays at a time scale of 2"

    assert emu("link", "cut", "a--*").stdout == "a--b\n  a <-> b: cut\n"
    assert answered(lab) == []
    assert emu("link", "set", "a--b", "delay=20 ms").stdout.endswith("cut\n"), "what is set anew waits for the healing"
    assert emu("link", "heal", "a--b").stdout == "a--b\n  a <-> b: 10 Mbit, 20 ms\n"
    assert len(answered(lab)) == 3
    healed = links(lab)["a--b"]["a_to_b"]
    assert healed == after["a--b"]["a_to_b"] | {"delay": healed["delay"]} and healed["delay"] == pytest.approx(0.02)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("set", "a--x", "delay=1 ms"), "has no link 'a--x'; did you mean 'a--b'?"),
        (("set", "a--b", "delay"), "'delay' is no setting; write key=value"),
        (("set", "a--b", "dely=1 ms"), "unknown key 'dely'; did you mean 'delay'?"),
        (("set", "a--b", "loss=150 %"), "'150 %' is more than 100 %"),
        (("set", "a--b", "rate=0 bit"), "a rate of 0 lets nothing through"),
        (("set", "a--b", "jitter=30 ms"), "is more than the delay"),
        (("set", "a--b", "mtu=1400"), "the MTU of a link that is up stays as it is"),
        (("set", "a--b", "from=a"), "unknown key 'from'"),
        (("cut", "z*"), "has no link 'z*'"),
    ],
)
def test_mistakes_are_one_sentence_and_change_nothing(lab: str, words: tuple[str, ...], said: str) -> None:
    before = links(lab)
    done = emu("link", *words, check=False)
    assert done.returncode != 0 and done.stdout == ""
    assert said in done.stderr and done.stderr.count("\n") == 1
    assert links(lab) == before
