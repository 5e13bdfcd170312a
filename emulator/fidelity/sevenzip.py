"""7-Zip's benchmark: what to run, and its rating."""

from __future__ import annotations

import re
import shutil

#: names of the program in Debian's packages 7zip and p7zip-full
PROGRAMS = ("7zz", "7z", "7za")
INSTALL = "7-Zip is not installed (`apt-get install p7zip-full`)"
#: log2 of the dictionary, as the published figures' smallest: a larger one takes minutes in a slow node
DICTIONARY = 22


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
