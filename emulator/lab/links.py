"""The links of a running lab as they are now, and changes to them: set anew, cut, healed."""

from __future__ import annotations

from dataclasses import replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from emulator.core.errors import LabError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from emulator.core.plan import LinkPlan
    from emulator.lab.lab import Lab


def current(lab: Lab) -> list[LinkPlan]:
    """Every link of the Plan with what it does now, in emulated units."""
    from emulator.links.state import read_cables

    known = {cable.name: cable for cable in read_cables(lab.id, lab.links.name)}
    back = 1 / lab.plan.time_scale
    return [
        replace(link, a_to_b=known[link.name].a_to_b.scaled(back), b_to_a=known[link.name].b_to_a.scaled(back))
        for link in lab.plan.links
        if link.name in known
    ]


def matching(lab: Lab, pattern: str) -> list[LinkPlan]:
    """The links of that name, or those that a wildcard (`worker-*--core`) means. Raises LabError for none."""
    links = current(lab)
    found = [link for link in links if fnmatchcase(link.name, pattern)]
    if found:
        return found
    import difflib

    near = difflib.get_close_matches(pattern, [link.name for link in links], 1)
    hint = f"did you mean {near[0]!r}?" if near else f"see its links with `emu link list {lab.name}`"
    raise LabError(f"lab {lab.name!r} has no link {pattern!r}", fix=hint)


def change(lab: Lab, pattern: str, change_one: Callable[[LinkPlan], LinkPlan]) -> list[LinkPlan]:
    """Change each link that the name or wildcard means, all of its settings at once; returns them as they are now.

    All are computed before the first is set. Raises LabError, and LinkError where the driver cannot do it.
    """
    changed = [change_one(link) for link in matching(lab, pattern)]
    for link in changed:
        scale = lab.plan.time_scale
        lab.links.change(lab.id, link.name, link.a_to_b.scaled(scale), link.b_to_a.scaled(scale))
    return changed


def set_link(lab: Lab, pattern: str, words: Sequence[str]) -> list[LinkPlan]:
    """Lay settings ("delay=40 ms") over links. Raises as `change` and `reshape` do; then nothing is changed."""
    from emulator.topology.reshape import reshape

    return change(lab, pattern, lambda link: reshape(link, words))


def cut(lab: Lab, pattern: str) -> list[LinkPlan]:
    """Let links pass nothing more, until they are healed; what is under way still arrives."""
    return change(lab, pattern, lambda link: _with_cut(link, True))


def heal(lab: Lab, pattern: str) -> list[LinkPlan]:
    """Let links that were cut do again what they did."""
    return change(lab, pattern, lambda link: _with_cut(link, False))


def _with_cut(link: LinkPlan, is_cut: bool) -> LinkPlan:
    return replace(link, a_to_b=replace(link.a_to_b, cut=is_cut), b_to_a=replace(link.b_to_a, cut=is_cut))
