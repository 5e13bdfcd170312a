"""Entering by a token without namespaces: the same life of a process, on this host and without root."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from emulator.core.children import reap_ended
from emulator.core.enter import EnterToken, fork_into

HERE = EnterToken("here", environment=(("FROM_TOKEN", "yes"),))


def test_the_result_of_the_function_is_the_exit_status() -> None:
    assert fork_into(HERE, lambda: 3).wait(10) == 3
    assert fork_into(HERE, lambda: None).wait(10) == 0
    assert fork_into(HERE, lambda: sys.exit(4)).wait(10) == 4


def test_the_environment_is_added_to_and_signals_are_the_default() -> None:
    kept = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        process = fork_into(HERE, lambda: int(os.environ["FROM_TOKEN"] != "yes") or signal.pause())  # type: ignore[func-returns-value]
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == -signal.SIGTERM
    finally:
        signal.signal(signal.SIGTERM, kept)


def test_only_kept_descriptors_stay_open() -> None:
    read, write = os.pipe()

    def inside() -> int:
        try:
            os.fstat(read)
        except OSError:
            os.write(write, b"kept")
            return 0
        return 1

    process = fork_into(HERE, inside, keep=(write,))
    os.close(write)
    assert process.wait(10) == 0
    assert os.read(read, 10) == b"kept"
    os.close(read)


def test_waiting_with_a_time_out_leaves_it_running() -> None:
    process = fork_into(HERE, lambda: signal.pause())  # type: ignore[func-returns-value]
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.02)
    assert process.poll() is None
    process.send_signal(signal.SIGKILL)
    assert process.wait(10) == -signal.SIGKILL


def test_the_status_is_kept_when_another_asked_first() -> None:
    process = fork_into(HERE, lambda: 9)
    while process.returncode is None:
        reap_ended()
    assert process.wait(10) == 9


def test_a_token_survives_json() -> None:
    token = EnterToken("n", (("net", "/proc/1/ns/net"),), ("/sys/x",), (("A", "b"),), ("KILL",), 2, "/tmp", (7,))
    assert EnterToken.from_json(token.to_json()) == token
