"""7-Zip's benchmark: compressing and unpacking, whole numbers and tables, as most programs that are no arithmetic."""

from __future__ import annotations

import re
import shutil
import subprocess
import time

from emulator.devices.kernels.reading import Work

#: names of the program in Debian's packages 7zip and p7zip-full
PROGRAMS = ("7zz", "7z", "7za")
INSTALL = "7-Zip is not installed (`apt-get install p7zip-full`)"
#: log2 of the dictionary, as the published figures' smallest: a larger one takes minutes in a slow node
DICTIONARY = 22


def sevenzip(threads: int) -> Work:
    """One pass of the benchmark with so many threads, in the program's own instructions: its rating times the pass's
    time, which is the same in each pass. Raises ImportError where 7-Zip is not installed."""
    asked = command(threads)
    if asked is None:
        raise ImportError(INSTALL, name="7-Zip (`apt-get install p7zip-full`)")

    def run() -> float:
        done = subprocess.run(asked, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
        return rating(done.stdout)

    start = time.perf_counter()
    rated = run()
    seconds = time.perf_counter() - start
    return Work(run, rated * seconds, "million instructions", f"one pass, dictionary of {1 << DICTIONARY - 20} MiB")


def command(threads: int) -> list[str] | None:
    """One pass of the benchmark with so many threads; None where 7-Zip is not installed."""
    found = next(filter(None, map(shutil.which, PROGRAMS)), None)
    return [found, "b", "1", f"-mmt{threads}", f"-md{DICTIONARY}"] if found else None


def rating(text: str) -> float:
    """The total rating that it printed, in MIPS; raises ValueError where there is none."""
    total = re.search(r"^Tot:((?:\s+\d+)+)\s*$", text, re.MULTILINE)
    if total is None:
        raise ValueError("7-Zip printed no total rating")
    return float(total[1].split()[-1])
