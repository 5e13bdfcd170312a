"""`emu isa-check`: programs and packages that a device's core cannot run are caught, and what it can run is not."""

from __future__ import annotations

import json
import subprocess
import zipfile
from pathlib import Path
from urllib.parse import quote

import pytest

from emulator.isa.container import LABEL
from emulator.runtimes.docker import engine
from tests.integration.traces import emu

DOT_PRODUCT = """
#include <arm_neon.h>
int main(void) {
  int8_t ones[16];
  for (int i = 0; i < 16; i++) ones[i] = 1;
  int32x4_t sum = vdotq_s32(vdupq_n_s32(0), vld1q_s8(ones), vld1q_s8(ones));
  return vaddvq_s32(sum) != 16;
}
"""
ATOMIC_ADD = "int main(void) { int n = 1; __atomic_fetch_add(&n, 41, __ATOMIC_SEQ_CST); return n != 42; }"
ATOMIC_SWAP = """
int main(void) {
  int n = 1, old = 1;
  return !__atomic_compare_exchange_n(&n, &old, 42, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}
"""
PLAIN = "int main(int count, char **words) { return count > 1 ? words[1][0] - '0' : 0; }"
NEWER = "-march=armv8.2-a+dotprod"


def compiled(source: str, out: Path, *flags: str) -> Path:
    text = out.with_suffix(".c")
    text.write_text(source)
    subprocess.run(["aarch64-linux-gnu-gcc", "-O2", *flags, "-o", str(out), str(text)], check=True)
    return out


@pytest.mark.needs("aarch64-gcc", "qemu-aarch64")
def test_a_program_for_armv8_2_is_caught_on_a_pi_4_and_runs_on_a_pi_5(tmp_path: Path) -> None:
    sources = {"dot": DOT_PRODUCT, "add": ATOMIC_ADD, "swap": ATOMIC_SWAP}
    newer = [str(compiled(source, tmp_path / name, "-static", NEWER)) for name, source in sources.items()]
    older = str(compiled(ATOMIC_ADD, tmp_path / "older", "-static", "-march=armv8-a", "-mno-outline-atomics"))
    done = emu("isa-check", *newer, older, "--json", check=False)
    assert done.returncode == 1
    found = {item["name"]: (item["outcome"], item["signal"]) for item in json.loads(done.stdout)["findings"]}
    assert found == {**dict.fromkeys(sources, ("dies", "SIGILL")), "older": ("ok", "")}
    done = emu("isa-check", *newer, older, "--device", "rpi-5")
    assert "nothing dies on cortex-a76 (rpi-5) of 4 checked" in done.stdout


@pytest.mark.needs("aarch64-gcc", "qemu-aarch64")
def test_a_program_with_arguments_one_that_stays_and_one_that_lacks_its_libraries(tmp_path: Path) -> None:
    plain = str(compiled(PLAIN, tmp_path / "plain", "-static"))
    assert "it ended with exit status 3" in emu("isa-check", plain, "--args", "3").stdout
    stays = str(compiled("int main(void) { for (;;); }", tmp_path / "stays", "-static"))
    assert "it still ran when its time was over" in emu("isa-check", stays, "--timeout", "1").stdout
    dynamic = str(compiled(PLAIN, tmp_path / "dynamic"))
    done = emu("isa-check", dynamic, check=False)
    assert done.returncode == 2
    assert "needs libraries of a system (/lib/ld-linux-aarch64.so.1); name an image that has them" in done.stderr


def wheel(folder: Path, name: str, files: dict[str, bytes], tag: str = "py3-none-manylinux_2_17_aarch64") -> str:
    made = folder / f"{name}-1.0-{tag}.whl"
    info = f"{name}-1.0.dist-info"
    files = files | {f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n".encode()}
    with zipfile.ZipFile(made, "w") as archive:
        for path, content in files.items():
            archive.writestr(path, content)
        archive.writestr(f"{info}/RECORD", "".join(f"{path},,\n" for path in [*files, f"{info}/RECORD"]))
    return str(made)


LOADS = b"""import ctypes, pathlib
ctypes.CDLL(str(pathlib.Path(__file__).parent / "code.so")).work()
"""
WORK = "int total = 1; int work(void) { return __atomic_fetch_add(&total, 41, __ATOMIC_SEQ_CST); }"


@pytest.mark.needs("docker-arm64", "aarch64-gcc")
def test_the_wheel_that_dies_is_named_also_where_another_imports_it(tmp_path: Path) -> None:
    shared = ("-shared", "-fPIC", "-nostdlib")
    bad = compiled(WORK, tmp_path / "bad.so", *shared, NEWER).read_bytes()
    good = compiled(WORK, tmp_path / "good.so", *shared, "-march=armv8-a", "-mno-outline-atomics").read_bytes()
    wheels = [
        wheel(tmp_path, "newer", {"newer/__init__.py": LOADS, "newer/code.so": bad}),
        wheel(tmp_path, "older", {"older/__init__.py": LOADS, "older/code.so": good}),
        wheel(tmp_path, "user", {"user.py": b"import newer\n"}),
        wheel(tmp_path, "lacking", {"lacking.py": b"import nowhere\n"}),
    ]
    done = emu("isa-check", *wheels, "--image", "emu/base:arm64", "--json", check=False)
    assert done.returncode == 1, done.stderr
    told = json.loads(done.stdout)
    found = {item["name"]: item for item in told["findings"]}
    assert {name: item["outcome"] for name, item in found.items()} == {
        "newer": "dies", "older": "ok", "user": "dies", "lacking": "unknown",
    }  # fmt: skip
    assert (found["user"]["signal"], found["user"]["owner"]) == ("SIGILL", "newer")
    assert found["user"]["at"] == "newer/__init__.py:2"
    assert "No module named 'nowhere'" in found["lacking"]["detail"]
    assert told["verdict"].startswith("newer 1.0 dies with SIGILL on cortex-a72 (rpi-4): take another version")
    done = emu("isa-check", *wheels[:3], "--image", "emu/base:arm64", "--device", "rpi-5")
    assert "nothing dies on cortex-a76 (rpi-5) of 3 checked" in done.stdout


@pytest.mark.needs("docker-arm64", "aarch64-gcc")
def test_a_dynamic_program_and_a_library_in_an_image(tmp_path: Path) -> None:
    dynamic = str(compiled(ATOMIC_ADD, tmp_path / "dynamic", NEWER))
    library = str(compiled(WORK, tmp_path / "work.so", "-shared", "-fPIC", NEWER))
    done = emu("isa-check", dynamic, library, "--image", "emu/base:arm64", "--json", check=False)
    found = {item["name"]: (item["outcome"], item["signal"]) for item in json.loads(done.stdout)["findings"]}
    assert found == {"dynamic": ("dies", "SIGILL"), "work.so": ("ok", "")}
    filters = quote(json.dumps({"label": [LABEL]}))
    assert engine.ask(f"/containers/json?all=1&filters={filters}") == (200, [])


@pytest.mark.needs("docker", "qemu-aarch64")
def test_images_that_cannot_be_checked_are_one_sentence() -> None:
    for image, status, said in (
        ("Foo Bar", 2, "emu: 'Foo Bar' is no image's name; write it like alpine:3"),
        ("emu/nowhere", 20, "emu: image emu/nowhere:arm64 has not been built; emu has no image of that name"),
    ):
        done = emu("isa-check", image, check=False)
        assert done.returncode == status and done.stderr.startswith(said)
    done = emu("isa-check", "emu/base:amd64", check=False)
    assert done.returncode == 2
    assert "emu/base:amd64: the image is for amd64, and the device runs arm64; name one for arm64" in done.stderr
