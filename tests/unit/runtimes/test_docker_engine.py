"""What is said of an engine that is not there, may not be used, is too old, or refuses."""

from __future__ import annotations

import json
import os
import platform
import socket
import tempfile
import threading
from pathlib import Path

import pytest

from emulator.core.errors import HostError, RuntimeFailure
from emulator.core.lab_id import LabId
from emulator.core.plan import NodePlan, Plan
from emulator.runtimes import choose
from emulator.runtimes.docker import engine, place


def answering(path: Path, body: object, status: str = "200 OK") -> None:
    """A thread that answers one request at a unix socket."""
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(path))
    server.listen()

    def serve() -> None:
        peer, _ = server.accept()
        peer.recv(65536)
        text = json.dumps(body)
        peer.sendall(f"HTTP/1.1 {status}\r\nContent-Length: {len(text)}\r\nConnection: close\r\n\r\n{text}".encode())
        peer.close()
        server.close()

    threading.Thread(target=serve, daemon=True).start()


@pytest.fixture
def at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "docker.sock"
    monkeypatch.setenv("DOCKER_HOST", f"unix://{path}")
    return path


def test_no_engine_is_one_sentence_with_the_remedy(at: Path) -> None:
    assert "no Docker engine answers at unix://" in str(engine.problem())
    assert "start one (systemctl start docker), or set DOCKER_HOST" in str(engine.problem())
    assert not engine.is_there() and engine.find_labs() == []
    with pytest.raises(HostError, match="no Docker engine answers"):
        engine.client()


@pytest.mark.parametrize(("image", "helps"), [("", True), ("redis:7", False)])
def test_embedded_nodes_are_offered_where_they_would_do(at: Path, image: str, helps: bool) -> None:
    plan = Plan("p", (NodePlan("n", image=image),), ())
    with pytest.raises(HostError, match="no Docker engine answers") as caught:
        choose("docker", plan)
    assert ("--runtime embedded needs no engine" in str(caught.value)) is helps


def test_a_socket_that_nobody_listens_at(at: Path) -> None:
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(at))
    assert "Connection refused" in str(engine.problem())


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        ({"ApiVersion": "1.24"}, "200 OK", r"too old (API 1.24); install Docker 20.10"),
        ({"ApiVersion": "1.40"}, "200 OK", r"too old (API 1.40); install Docker 20.10"),
        ({"ApiVersion": "1.41"}, "200 OK", ""),
        ({"ApiVersion": "1.100"}, "200 OK", ""),
        ([], "200 OK", "is no Docker engine"),
        ({}, "404 Not Found", "is no Docker engine"),
    ],
)
def test_the_version_decides(at: Path, body: object, status: str, said: str) -> None:
    answering(at, body, status)
    found = engine.problem()
    assert said in str(found or "") and bool(said) == bool(found)


@pytest.mark.parametrize("host", ["ssh://pi@far", "npipe:////./pipe/engine", "/var/run/docker.sock", "unix://", "tcp"])
def test_an_address_that_names_no_engine_of_this_host(monkeypatch: pytest.MonkeyPatch, host: str) -> None:
    monkeypatch.setenv("DOCKER_HOST", host)
    assert str(engine.problem()).startswith(
        f"DOCKER_HOST is {host!r}, which names no engine of this host; set it to unix:"
    )
    assert not engine.is_there()


@pytest.mark.parametrize("host", ["unix:///tmp", "tcp://127.0.0.1:port", "tcp://127.0.0.1:1", "unix:///" + "x" * 200])
def test_an_address_at_which_nobody_can_answer(monkeypatch: pytest.MonkeyPatch, host: str) -> None:
    monkeypatch.setenv("DOCKER_HOST", host)
    assert f"no Docker engine answers at {host} (" in str(engine.problem())
    assert not engine.is_there()


def test_an_empty_address_is_the_usual_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "")
    assert engine.address() == "unix:///var/run/docker.sock"


@pytest.mark.needs("root")
@pytest.mark.parametrize("closed", ["socket", "directory"])
def test_a_socket_that_this_user_may_not_use(monkeypatch: pytest.MonkeyPatch, closed: str) -> None:
    with tempfile.TemporaryDirectory() as name, socket.socket(socket.AF_UNIX) as server:
        path = Path(name, "docker.sock")
        server.bind(str(path))
        server.listen()
        path.chmod(0o600)
        Path(name).chmod(0o700 if closed == "directory" else 0o755)
        monkeypatch.setenv("DOCKER_HOST", f"unix://{path}")
        os.seteuid(65534)
        try:
            assert "may not be used; run emu as root, or join the group docker" in str(engine.problem())
            assert not engine.is_there() and engine.find_labs() == []
        finally:
            os.seteuid(0)


class Info:
    """An engine's client that only says what it is."""

    def __init__(self, **facts: object) -> None:
        self._facts = {"CgroupDriver": "cgroupfs", "KernelVersion": platform.release()} | facts

    def info(self) -> dict[str, object]:
        return self._facts


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        ({"SecurityOptions": ["name=seccomp", "name=rootless"]}, "the engine is rootless"),
        ({"KernelVersion": "5.15.0-desktop"}, r"not on this host \(it runs on Linux 5.15.0-desktop, this host is "),
    ],
)
def test_an_engine_whose_containers_cannot_be_nodes(facts: dict[str, object], said: str) -> None:
    with pytest.raises(HostError, match=f"{said}.*; use the engine"):
        place.by_files(Info(**facts))  # type: ignore[arg-type]


def test_the_cgroup_driver_decides_where_containers_lie() -> None:
    assert place.by_files(Info())  # type: ignore[arg-type]
    assert not place.by_files(Info(CgroupDriver="systemd"))  # type: ignore[arg-type]


def test_labs_are_found_by_label(at: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "is_there", lambda: True)
    answering(at, [{"Labels": {"emu.lab": "two", "emu.node": "a"}}, {"Labels": {"emu.lab": "one"}}])
    assert engine.find_labs() == ["one", "two"]


def test_what_an_engine_refuses_is_one_sentence() -> None:
    from docker.errors import APIError

    with (
        pytest.raises(RuntimeFailure, match=r"node: the engine refused \(no such thing\); mend it"),
        engine.told("node", "mend it"),
    ):
        raise APIError("500", explanation="no such\n thing")
    with pytest.raises(HostError, match="the engine's disk is full"), engine.told("node"):
        raise APIError("500", explanation="write /x: no space left on device")


def test_an_embedded_node_does_not_pass_for_a_container(monkeypatch: pytest.MonkeyPatch) -> None:
    from emulator.core.plan import NodePlan, Plan
    from emulator.runtimes import embedded

    for node in (NodePlan("n", image="alpine:3"), NodePlan("n", arch="s390x")):
        plan = Plan("refused", (node,), ())
        with pytest.raises(RuntimeFailure, match=r"n: it is to run .*; use --runtime docker"):
            embedded.EmbeddedRuntime().create(LabId.of("refused"), plan, plan.nodes, lambda _kind, _name: None)
    assert not LabId.of("refused").directory.exists()


def test_a_plan_that_needs_an_engine_says_so_where_there_is_none(at: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from emulator import runtimes
    from emulator.core.plan import NodePlan, Plan

    monkeypatch.delenv("EMU_RUNTIME", raising=False)
    monkeypatch.setattr("emulator.runtimes.embedded.EmbeddedRuntime.probe", lambda _self: [])
    with pytest.raises(HostError, match="nodes cannot be made here: no Docker engine answers"):
        runtimes.choose(None, Plan("p", (NodePlan("n", image="alpine:3"),), ()))
    assert runtimes.choose(None, Plan("p", (NodePlan("n"),), ())).name == "embedded"
    monkeypatch.setenv("EMU_RUNTIME", "fake")
    assert runtimes.choose(None).name == "fake"


def test_a_choice_left_to_emu_passes_over_images_of_another_emu(monkeypatch: pytest.MonkeyPatch) -> None:
    from emulator import runtimes
    from emulator.core.code import digest
    from emulator.core.plan import NodePlan, Plan
    from emulator.runtimes.docker import image

    labels = {"emu.code": "of-yesterday"}
    monkeypatch.delenv("EMU_RUNTIME", raising=False)
    monkeypatch.setattr(engine, "is_there", lambda: True)
    monkeypatch.setattr(engine, "order", lambda _path: (200, {"Config": {"Labels": labels}}))
    monkeypatch.setattr(image, "is_there", lambda _name: True)
    monkeypatch.setattr("emulator.runtimes.embedded.EmbeddedRuntime.probe", lambda _self: [])
    monkeypatch.setattr("emulator.runtimes.docker.runtime.DockerRuntime.probe", lambda _self: [])
    plain, training = Plan("p", (NodePlan("n"),), ()), Plan("p", (NodePlan("w", role="worker"),), ())
    assert runtimes.choose(None, plain).name == "docker"
    assert runtimes.choose(None, training).name == "embedded"
    assert "emu/torch" in runtimes.passed_over(None, "embedded", training)
    assert "emu images build torch" in runtimes.passed_over(None, "embedded", training)
    assert runtimes.passed_over("embedded", "embedded", training) == ""
    assert runtimes.passed_over(None, "docker", plain) == ""
    labels["emu.code"] = digest()
    assert runtimes.choose(None, training).name == "docker"


@pytest.mark.parametrize("labels", [None, {}, {"emu.code": "of-yesterday"}])
def test_an_image_with_other_roles_is_refused_before_a_run(at: Path, labels: dict[str, str] | None) -> None:
    from emulator.core.code import digest
    from emulator.core.plan import NodePlan, Plan
    from emulator.runtimes.docker import image

    nodes = (NodePlan("own", role="worker", image="mine:1"), NodePlan("w", role="worker", arch="arm64"))
    answering(at, {"Config": {"Labels": labels}})
    with pytest.raises(HostError, match=r"w: image emu/torch:arm64 holds another .* images build torch --arch arm64"):
        image.require_current(Plan("p", nodes, ()))
    at.unlink()
    answering(at, {"Config": {"Labels": {"emu.code": digest()}}})
    image.require_current(Plan("p", nodes, ()))
