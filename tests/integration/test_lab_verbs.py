"""What a user does with a lab that is up, from the command line: one body over embedded nodes and containers."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from emulator.core.errors import HostError, RuntimeFailure
from emulator.core.lab_id import LabId
from emulator.lab import Lab
from emulator.lab.remove import check_allowed
from tests.integration.small_lab import topology
from tests.integration.traces import EMU, emu

pytestmark = pytest.mark.needs("root", "netns", "tun", "cgroup", "overlay")


@pytest.fixture(scope="module", params=["embedded", pytest.param("docker", marks=pytest.mark.needs("docker"))])
def lab(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A lab of each runtime for the whole module: no test here takes it down."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EMU_RUNTIME", request.param)
        name = f"it-{os.getpid()}-{request.param}"
        emu("up", str(topology(tmp_path_factory.mktemp("verbs"), name)))
        yield name
        emu("down", name, check=False)


def test_programs_run_in_nodes_with_their_exit_status(lab: str) -> None:
    assert emu("exec", "-l", lab, "worker-1", "--", "hostname").stdout == "worker-1\n"
    assert emu("exec", "-l", lab, "worker-1", "--", "sh", "-c", "exit 7", check=False).returncode == 7
    assert emu("exec", "-l", lab, "worker-1", "--", "sh", "-c", "kill -9 $$", check=False).returncode == 137
    missing = emu("exec", "-l", lab, "worker-1", "--", "no-such-program", check=False)
    assert missing.returncode == 22 and "no-such-program" in missing.stderr and "Traceback" not in missing.stderr


def test_an_unknown_node_is_refused_with_the_nearest(lab: str) -> None:
    done = emu("exec", "-l", lab, "worker1", "--", "true", check=False)
    assert done.returncode == 21
    assert done.stderr == f"emu: lab '{lab}' has no node 'worker1' that runs programs; did you mean 'worker-1'?\n"


def test_nodes_reach_each_other_by_name_at_the_set_delay(lab: str) -> None:
    done = emu("exec", "-l", lab, "worker-1", "--", "ping", "-c", "5", "-i", "0.2", "server")
    times = [float(line.split("time=")[1].split()[0]) for line in done.stdout.splitlines() if "time=" in line]
    assert len(times) == 5 and 19.5 <= min(times) < 22.0


def test_status_and_stats(lab: str) -> None:
    status = json.loads(emu("status", lab, "--json").stdout)
    assert status["phase"] == "up" and status["links_alive"]
    assert [(node["node"], node["state"]) for node in status["nodes"]] == [
        ("server", "up"), ("worker-1", "up"), ("worker-2", "up"),
    ]  # fmt: skip
    stats = json.loads(emu("stats", "-l", lab, "--json", "--interval", "0.3").stdout)
    assert set(stats["nodes"]) == {"server", "worker-1", "worker-2"} and len(stats["links"]) == 3
    assert "worker-1" in emu("stats", lab, "--interval", "0.2").stdout
    assert "alive" in emu("link", "health", lab).stdout
    assert "carry traffic" in emu("status", lab).stdout


def test_a_lab_of_another_state_directory_is_told_from_a_leftover(lab: str, tmp_path: Path) -> None:
    elsewhere = emu("status", "--all", env={**os.environ, "EMU_STATE_DIR": str(tmp_path / "none")}).stdout
    line = next(line for line in elsewhere.splitlines() if line.startswith(f"{lab}: "))
    assert line == f"{lab}: runs, but its state is not here (another EMU_STATE_DIR), or a crash has taken it"


def test_only_root_may_remove_what_is_roots(lab: str, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = LabId.of(lab)
    check_allowed([mine])
    monkeypatch.setattr(os, "geteuid", lambda: 65534)
    check_allowed([LabId("not-there", mine.root)])
    with pytest.raises(HostError, match="removing a lab needs root; run it with sudo"):
        check_allowed([LabId("not-there", mine.root), mine])


def test_a_program_or_environment_that_the_kernel_cannot_take_is_named(lab: str) -> None:
    node = Lab.attach(lab).node("worker-1")
    with pytest.raises(RuntimeFailure, match="cannot be started"):
        node.run(["env"], env={"A=B": "x"})
    with pytest.raises(RuntimeFailure, match="the program '' "):
        node.run([""])


def test_a_taken_name_is_refused_and_the_running_lab_stays(lab: str, tmp_path: Path) -> None:
    done = emu("up", str(topology(tmp_path, lab)), check=False)
    assert done.returncode == 21 and f"a lab named '{lab}' is there already" in done.stderr
    assert json.loads(emu("status", lab, "--json").stdout)["phase"] == "up"


def test_the_command_of_a_node_runs_logs_and_is_reached_through_a_forward(lab: str) -> None:
    forward = subprocess.Popen(
        [EMU, "forward", "-l", lab, "server:8000"],
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert forward.stdout is not None
        port = int(forward.stdout.readline().split()[0].rpartition(":")[2])
        answer = _get(port)
        assert answer.startswith(b"HTTP/1.0 200")
    finally:
        forward.send_signal(signal.SIGINT)
        assert forward.wait(10) == 130
        forward.stdout.close()  # type: ignore[union-attr]
    deadline = time.monotonic() + 10
    while "GET /" not in (log := emu("logs", "-l", lab, "server").stdout):
        assert time.monotonic() < deadline, log
        time.sleep(0.2)


def _get(port: int) -> bytes:
    deadline = time.monotonic() + 20
    while True:
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=5) as client:
                client.sendall(b"GET / HTTP/1.0\r\n\r\n")
                data = b"".join(iter(lambda: client.recv(65536), b""))
        except ConnectionResetError:  # the node's server does not listen yet, which looks like this from outside
            data = b""
        if data or time.monotonic() > deadline:
            return data
        time.sleep(0.3)


def test_a_command_that_dies_is_restarted_as_the_file_says(lab: str) -> None:
    def server() -> str:
        find = ["sh", "-c", "grep -la '^python3' /proc/[0-9]*/cmdline | cut -d/ -f3"]
        return emu("exec", "-l", lab, "server", "--", *find, check=False).stdout.strip()

    deadline = time.monotonic() + 20
    while not (first := server()) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert first
    emu("exec", "-l", lab, "server", "--", "sh", "-c", f"kill -9 {first}")
    while (second := server()) in ("", first) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert second and second != first


def test_copying_in_and_out(lab: str, tmp_path: Path) -> None:
    source = tmp_path / "tree"
    (source / "sub").mkdir(parents=True)
    (source / "sub" / "file").write_bytes(bytes(range(256)) * 1000)
    emu("cp", "-l", lab, str(source), "worker-1:/tmp/")
    emu("cp", "-l", lab, "worker-1:/tmp/tree", str(tmp_path / "back"))
    assert (tmp_path / "back" / "sub" / "file").read_bytes() == (source / "sub" / "file").read_bytes()
    refused = emu("cp", "-l", lab, "worker-1:/no/such", str(tmp_path), check=False)
    assert refused.returncode == 2 and "'/no/such' does not exist on worker-1" in refused.stderr
    (tmp_path / "file").write_text("kept")
    refused = emu("cp", "-l", lab, "worker-1:/tmp/tree", str(tmp_path / "file"), check=False)
    assert refused.returncode == 2 and "is a file here; give a directory" in refused.stderr
    assert (tmp_path / "file").read_text() == "kept"
    refused = emu("cp", "-l", lab, str(source), "worker-1:/etc/hostname", check=False)
    assert refused.returncode == 2 and "'/etc/hostname' is a file on worker-1" in refused.stderr
    assert emu("exec", "-l", lab, "worker-1", "--", "cat", "/etc/hostname").returncode == 0
    refused = emu("cp", "-l", lab, "worker-1:/dev/null", str(tmp_path / "null"), check=False)
    assert refused.returncode == 2 and "Traceback" not in refused.stderr
    refused = emu("cp", "-l", lab, "a", "b", check=False)
    assert refused.returncode == 2 and "one of the two paths must be in a node" in refused.stderr


def test_two_labs_do_not_see_each_other(lab: str, tmp_path: Path) -> None:
    other = f"{lab}-b"
    emu("up", str(topology(tmp_path, other)))
    try:
        with_two = emu("exec", "worker-1", "--", "true", check=False)
        assert with_two.returncode == 21 and "say which one with --lab NAME" in with_two.stderr
        marker = f"marker-{os.getpid()}"
        emu("exec", "-l", lab, "worker-1", "--", "sh", "-c", f"touch /tmp/{marker} && ip -o link | wc -l")
        seen = emu("exec", "-l", other, "worker-1", "--", "sh", "-c", "ls /tmp /run; cat /proc/mounts")
        assert marker not in seen.stdout and lab not in seen.stdout.replace(other, "")
        # The same addresses in both: a packet of one lab never shows in the other's counters.
        before = json.loads(emu("stats", "-l", other, "--json", "--interval", "0.1").stdout)["links"]
        emu("exec", "-l", lab, "worker-1", "--", "ping", "-c", "5", "-i", "0.2", "server")
        after = json.loads(emu("stats", "-l", other, "--json", "--interval", "0.1").stdout)["links"]
        assert {k: v["a_to_b"]["packets"] for k, v in before.items()} == {
            k: v["a_to_b"]["packets"] for k, v in after.items()
        }
    finally:
        emu("down", other)
    assert emu("exec", "-l", lab, "worker-1", "--", "hostname").stdout == "worker-1\n"


def test_a_node_that_ran_out_of_memory_is_named_with_what_it_held_and_its_cap(tmp_path: Path) -> None:
    name = f"it-{os.getpid()}-memory"
    file = tmp_path / "memory.yaml"
    file.write_text(f"name: {name}\nnodes:\n  small: {{device: rpi-4, memory: 64 MiB, command: sleep 60}}\n")
    told = "small ran out of memory: the kernel ended 1 program there (it held up to 64 MiB of 64 MiB); give it more"
    emu("up", str(file), "--runtime", "embedded")
    try:
        hungry = emu("exec", "-l", name, "small", "--", "python3", "-c", "bytearray(200 << 20)", check=False)
        assert hungry.returncode == 137 and told in hungry.stderr
        (node,) = json.loads(emu("status", name, "--json").stdout)["nodes"]
        assert node["state"] == "up, out of memory" and node["why"].startswith(told)
        assert told in emu("logs", "-l", name, "small").stderr
    finally:
        emu("down", name)
