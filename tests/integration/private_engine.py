"""A Docker engine of a test's own, so that stopping it hurts nobody, with one image of a few hundred kilobytes."""

from __future__ import annotations

import io
import os
import shutil
import signal
import subprocess
import tarfile
import tempfile
import time
from pathlib import Path

TINY = "tiny:1"
#: an image without a shell
BARE = "bare:1"
_APPLETS = ("sh", "sleep", "echo", "true", "false", "cat", "hostname", "test", "tar", "head", "tail", "ls", "nproc")


class PrivateEngine:
    """dockerd on a socket of its own. `start` and `stop` as often as one likes; `close` leaves nothing of it."""

    def __init__(self) -> None:
        self._root = Path(tempfile.mkdtemp(prefix="emu-d-"))
        self._daemon: subprocess.Popen[bytes] | None = None
        self.host = f"unix://{self._root}/sock"

    def start(self, *options: str) -> None:
        """Start the daemon, and wait until it answers."""
        places = ("data-root", "exec-root", "pidfile")
        argv = ["dockerd", "--bridge=none", "--iptables=false", "-H", self.host, *options]
        argv += [word for place in places for word in (f"--{place}", str(self._root / place))]
        self._launch(argv, dict(os.environ))

    def _launch(self, argv: list[str], environment: dict[str, str]) -> None:
        with open(self._root / "log", "ab") as log:
            self._daemon = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment)
        deadline = time.monotonic() + 120
        while subprocess.run(["docker", "-H", self.host, "version"], capture_output=True, check=False).returncode:
            said = (self._root / "log").read_text()[-2000:]
            assert time.monotonic() < deadline and self._daemon.poll() is None, said
            time.sleep(0.1)

    def stop(self, sig: int = signal.SIGTERM) -> None:
        """End the daemon and wait for its end; after SIGKILL the containers go on."""
        assert self._daemon is not None
        containerd = self._root / "exec-root" / "containerd" / "containerd.pid"
        pid = int(containerd.read_text())
        self._daemon.send_signal(sig)
        self._daemon.wait(60)
        self._daemon = None
        # The kernel ends containerd with it. Where nobody reaps orphans, its pid would pass for a living one.
        deadline = time.monotonic() + 10
        while _lives(pid):
            assert time.monotonic() < deadline, "containerd goes on"
            time.sleep(0.05)
        for left in (self._root / "pidfile", containerd):
            left.unlink(missing_ok=True)

    def docker(self, *argv: str) -> str:
        """What docker's own command prints."""
        done = subprocess.run(["docker", "-H", self.host, *argv], capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"docker {' '.join(argv)}: {done.stderr}"
        return done.stdout.strip()

    def load(self) -> None:
        """Give it the two images: busybox with a few of its names, and the same without any."""
        for name, applets in ((TINY, _APPLETS), (BARE, ())):
            subprocess.run(
                ["docker", "-H", self.host, "import", "-c", 'CMD ["sleep", "infinity"]', "-", name],
                input=_files(applets),
                capture_output=True,
                check=True,
            )

    def __enter__(self) -> PrivateEngine:
        """Started, with the two images."""
        try:
            self.start()
            self.load()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Remove its containers, end it, and delete its files."""
        try:
            if self._daemon is None:
                self.start()
            if left := self.docker("ps", "-aq").split():
                self.docker("rm", "-f", *left)
            self.stop()
        finally:
            points = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
            for point in reversed([point for point in points if Path(point).is_relative_to(self._root)]):
                subprocess.run(["umount", "-l", point], check=False)
            shutil.rmtree(self._root)


class PrivatePodman(PrivateEngine):
    """Podman's service of the same protocol."""

    def start(self, *options: str) -> None:
        """Start the service, and wait until it answers."""
        # Its default is more open files than a machine without CAP_SYS_RESOURCE may give.
        (self._root / "conf").write_text('[containers]\ndefault_ulimits = ["nofile=4096:4096", "nproc=4096:4096"]\n')
        argv = ["podman", "--root", str(self._root / "root"), "--runroot", str(self._root / "run"), *options]
        argv += ["--cgroup-manager", "cgroupfs", "system", "service", "--time=0", self.host]
        self._launch(argv, os.environ | {"CONTAINERS_CONF": str(self._root / "conf")})

    def stop(self, sig: int = signal.SIGTERM) -> None:
        """End the service; containers go on, each below a monitor of its own."""
        assert self._daemon is not None
        self._daemon.send_signal(sig)
        self._daemon.wait(60)
        self._daemon = None


def _lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def _files(applets: tuple[str, ...]) -> bytes:
    busybox = shutil.which("busybox")
    assert busybox is not None
    with io.BytesIO() as buffer:
        with tarfile.open(fileobj=buffer, mode="w") as archive:
            archive.add(os.path.realpath(busybox), "bin/busybox")
            for name in applets:
                link = tarfile.TarInfo(f"bin/{name}")
                link.type, link.linkname = tarfile.SYMTYPE, "busybox"
                archive.addfile(link)
        return buffer.getvalue()
