"""Counts and wildcards unfolded: one entry for each node and each cable."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from emulator.core.errors import TopologyError
from emulator.topology.explain import nearest
from emulator.topology.model import MAX_NODES, NODE_NAME, Link, Node

if TYPE_CHECKING:
    from collections.abc import Sequence

    from emulator.core.yaml_file import Document, Step
    from emulator.topology.topology import Topology

MAX_LINKS = 5000


@dataclass(frozen=True)
class OneNode:
    """One node; `steps` lead to the entry in the file that it comes from."""

    name: str
    spec: Node
    group: str
    steps: tuple[Step, ...]


@dataclass(frozen=True)
class OneLink:
    """One cable from `a` to `b`; `steps` lead to its entry in the file."""

    name: str
    a: str
    b: str
    spec: Link
    steps: tuple[Step, ...]


def nodes(topology: Topology) -> dict[str, OneNode]:
    """All nodes by name, in the order of the file; raises TopologyError."""
    document = topology.document
    default = topology.spec.defaults.group if topology.spec.defaults else None
    result: dict[str, OneNode] = {}
    for base, spec in topology.spec.nodes.items():
        for node in _copies(base, spec or Node.model_construct(), default or "", document):
            if node.name in result:
                first = document.where(*result[node.name].steps)
                raise TopologyError(
                    f"node {node.name!r} is made twice (first at {first})",
                    where=document.where(*node.steps),
                    fix="give one of them another name",
                )
            result[node.name] = node
    if not result:
        raise TopologyError("there is no node", where=document.where("nodes"), fix="add one under `nodes:`")
    if len(result) > MAX_NODES:
        raise TopologyError(
            f"{len(result)} nodes are more than one host can hold", where=document.where("nodes"),
            fix=f"keep to {MAX_NODES}, or split the cluster",
        )  # fmt: skip
    return result


def _copies(base: str, spec: Node, default: str, document: Document) -> list[OneNode]:
    steps = ("nodes", base)
    groups = _groups(base, spec, default, document)
    if spec.count is None and not isinstance(spec.group, dict):
        return [OneNode(base, spec, groups[0], steps)]
    longest = f"{base}-{len(groups)}"
    if not NODE_NAME.match(longest):
        raise TopologyError(f"the name {longest!r} is too long", where=document.where(*steps), fix="shorten it")
    return [OneNode(f"{base}-{number}", spec, group, steps) for number, group in enumerate(groups, 1)]


def _groups(base: str, spec: Node, default: str, document: Document) -> list[str]:
    """The group of each copy: {a: 3, b: 2} gives the first three to a and the next two to b."""
    if not isinstance(spec.group, dict):
        own = spec.group if spec.group is not None else default if spec.kind == "host" else ""
        return [own] * (spec.count or 1)
    groups = [group for group, count in spec.group.items() for _ in range(count)]
    if spec.count is not None and spec.count != len(groups):
        raise TopologyError(
            f"the groups of {base!r} hold {len(groups)} nodes and its count says {spec.count}",
            where=document.where("nodes", base, "group"),
            fix="make them agree, or leave the count out",
        )
    if len(groups) > MAX_NODES:
        where = document.where("nodes", base, "group")
        raise TopologyError(f"{len(groups)} nodes are too many", where=where, fix=f"keep to {MAX_NODES}")
    return groups


def links(topology: Topology, known: dict[str, OneNode]) -> dict[str, OneLink]:
    """All cables by name, in the order of the file; raises TopologyError."""
    result: dict[str, OneLink] = {}
    pairs: dict[tuple[str, str], OneLink] = {}
    for index, spec in enumerate(topology.spec.links or ()):
        for link in _cables(index, spec, topology, known):
            _admit(link, result, pairs, topology.document)
    return result


def _cables(index: int, spec: Link, topology: Topology, known: dict[str, OneNode]) -> list[OneLink]:
    steps: tuple[Step, ...] = ("links", index)
    document = topology.document
    sources = _select(spec.from_, (*steps, "from"), topology, known)
    targets = _select(spec.to, (*steps, "to"), topology, known)
    if sources == targets and len(sources) == 1:
        where = document.where(*steps)
        raise TopologyError(f"this links {sources[0]!r} to itself", where=where, fix="name two different nodes")
    if len(sources) * len(targets) > 2 * MAX_LINKS:
        where = document.where(*steps)
        raise TopologyError("this makes too many links", where=where, fix="connect the nodes by a switch or a router")
    # A pair that a wildcard names in both orders is one cable; a node that it names on both sides gets none to itself.
    pairs: dict[tuple[str, str], tuple[str, str]] = {}
    for a in sources:
        for b in targets:
            if a != b:
                pairs.setdefault((min(a, b), max(a, b)), (a, b))
    if spec.name and len(pairs) > 1:
        raise TopologyError(
            f"{len(pairs)} links cannot all be called {spec.name!r}", where=document.where(*steps, "name"),
            fix="leave the name out, or name single nodes",
        )  # fmt: skip
    return [OneLink(spec.name or f"{a}--{b}", a, b, spec, steps) for a, b in pairs.values()]


def _admit(
    link: OneLink, result: dict[str, OneLink], pairs: dict[tuple[str, str], OneLink], document: Document
) -> None:
    pair = (min(link.a, link.b), max(link.a, link.b))
    twin = result.get(link.name) or (None if link.spec.name else pairs.get(pair))
    if twin is not None:
        what = f"the link {link.name!r} is there already (at {document.where(*twin.steps)})"
        raise TopologyError(what, where=document.where(*link.steps), fix="remove one, or give it a `name` of its own")
    if len(result) >= MAX_LINKS:
        where = document.where(*link.steps)
        raise TopologyError(f"there are more than {MAX_LINKS} links", where=where, fix="use switches or routers")
    result[link.name] = link
    pairs.setdefault(pair, link)


def _select(
    words: str | Sequence[str], steps: tuple[Step, ...], topology: Topology, known: dict[str, OneNode]
) -> list[str]:
    """The nodes that the words name, each once, in the order of the file."""
    chosen: dict[str, None] = {}
    for word in [words] if isinstance(words, str) else words:
        matches = _matches(word, topology, known)
        if not matches:
            raise TopologyError(
                _unmatched(word), where=topology.document.where(*steps), fix=_near(word, topology, known)
            )
        chosen |= dict.fromkeys(matches)
    if not chosen:
        raise TopologyError("this names no node", where=topology.document.where(*steps), fix="name one")
    return list(chosen)


def _matches(word: str, topology: Topology, known: dict[str, OneNode]) -> list[str]:
    if word in known:
        return [word]
    if word.startswith("group:"):
        family = _family(word.removeprefix("group:"), topology)
        return [node.name for node in known.values() if node.group in family]
    if any(sign in word for sign in "*?["):
        return [name for name in known if fnmatchcase(name, word)]
    return []


def _family(group: str, topology: Topology) -> set[str]:
    """The group and all that extend it, directly or not."""
    family, groups = {group}, topology.spec.groups or {}
    for _ in groups:
        family |= {name for name, item in groups.items() if item and item.extends in family}
    return family


def _unmatched(word: str) -> str:
    if word.startswith("group:"):
        return f"no node is in the group {word.removeprefix('group:')!r}"
    return f"no node matches {word!r}" if any(sign in word for sign in "*?[") else f"there is no node {word!r}"


def _near(word: str, topology: Topology, known: dict[str, OneNode]) -> str:
    if word.startswith("group:"):
        return nearest(word.removeprefix("group:"), topology.spec.groups or ())
    if f"{word}-1" in known:
        return f"write '{word}-*' for all of them, or {word}-1 for one"
    import difflib

    close = difflib.get_close_matches(word, [*known, *(f"{base}-*" for base in topology.spec.nodes)], 1, cutoff=0.5)
    return f"did you mean {close[0]!r}?" if close else "name one that stands under `nodes:`"
