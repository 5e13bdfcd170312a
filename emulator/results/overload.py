"""What the overload monitor recorded during a run, put together: the worst of each cause, and when it was seen."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from emulator.results.trace import Trace

#: the record's node of what hit the whole lab
_ALL = "controller"


def merged(repeats: Sequence[tuple[str, Trace]]) -> list[dict[str, Any]]:
    """One entry for each variant, repeat, node and cause: `from_s` to `to_s` in emulated seconds after the first pull,
    the worst `value` beside its `limit`, `what` and `fix`. `node` is empty for what hit all. What was over before the
    first pull is left out."""
    found: dict[tuple[str, int, str, str], dict[str, Any]] = {}
    counts: dict[str, int] = {}
    for variant, one in repeats:
        repeat = counts[variant] = counts.get(variant, -1) + 1
        for item in one.overloads:
            if item["t"] < one.t0:
                continue
            node = "" if item["node"] == _ALL else str(item["node"])
            start, end = max(0.0, item["since"] - one.t0), item["t"] - one.t0
            entry = {"variant": variant, "repeat": repeat, "node": node, "from_s": start, "to_s": end}
            entry |= {key: item[key] for key in ("cause", "value", "limit", "what", "fix")}
            known = found.setdefault((variant, repeat, node, item["cause"]), entry)
            if item["value"] > known["value"]:
                known |= {key: item[key] for key in ("value", "what", "fix")}
            known["to_s"] = end
    return list(found.values())


def sentence(one: Mapping[str, Any]) -> str:
    """An entry for a person: which variant and node, what, when, and what to do."""
    place = one["variant"] + (f" #{one['repeat'] + 1}" if one["repeat"] else "") + (one["node"] and f", {one['node']}")
    return f"{place}: {one['what']}, from {one['from_s']:.1f} to {one['to_s']:.1f} s (emulated); {one['fix']}"
