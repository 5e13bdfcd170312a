"""`make bench`: run the benches and print their tables. Figures are printed, never asserted.

`python -m tests.bench --only startup --only links` runs some of them.
"""

from __future__ import annotations

import argparse
import importlib
import os
import platform
import sys
import time
import traceback
from pathlib import Path

NAMES = tuple(
    sorted(path.stem for path in Path(__file__).parent.glob("[a-z]*.py") if "def main() -> None:" in path.read_text())
)
#: set for benches that can be shorter
QUICK = "EMU_BENCH_QUICK"


def main(arguments: list[str]) -> int:
    """Run them one after another; a bench that fails is shown, and the others still run."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("--only", action="append", choices=NAMES, default=[], help="run only this one (repeatable)")
    parser.add_argument("--quick", action="store_true", help="shorter budgets where a bench has them (scale)")
    asked = parser.parse_args(arguments)
    if asked.quick:
        os.environ[QUICK] = "1"
    chosen = asked.only or NAMES
    load = ", ".join(f"{value:.2f}" for value in os.getloadavg())
    print(f"{os.cpu_count()} cores, {platform.system()} {platform.release()}, load {load}")
    failed = []
    for name in chosen:
        print(f"\n== {name}", flush=True)
        start = time.monotonic()
        try:
            importlib.import_module(f"tests.bench.{name}").main()
        except Exception:
            traceback.print_exc()
            failed.append(name)
        print(f"({name}: {time.monotonic() - start:.0f} s)", flush=True)
    if failed:
        print(f"failed: {', '.join(failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
