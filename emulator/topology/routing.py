"""Which way packets go: shortest paths by delay, then by hops, over switches and routers.

In a tree there is one path only and nothing to choose; elsewhere networkx (Dijkstra, one tree for each
destination, so that following it hop by hop cannot loop) chooses. networkx costs 0.3 s to import: only then.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    import networkx as nx

    from emulator.topology.graph import Graph

#: delays are compared in nanoseconds; a hop counts less than any difference of delay
_HOP = 1
_NANOSECOND = 4096


@dataclass(frozen=True)
class Hop:
    """The next host or router on the way, and the cable by which a packet leaves towards it."""

    via: str
    edge: int


class Routes:
    """Next hops, and for each cable the longest round trip of a path between hosts that uses it (seconds)."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._towards = {} if graph.is_tree else _shortest_trees(graph)

    def from_(self, source: str) -> dict[str, Hop]:
        """The next hop from `source` to each other host and router."""
        if self._graph.is_tree:
            return _tree_hops(self._graph, source)
        return {
            target: _first_hop(self._graph, source, parents)
            for target, parents in self._towards.items()
            if target != source
        }

    def longest_round_trips(self) -> list[float]:
        """For each cable, by index; a cable that no path uses counts its own round trip."""
        if self._graph.is_tree:
            return _tree_round_trips(self._graph)
        longest = [edge.round_trip for edge in self._graph.edges]
        for target, parents in self._towards.items():
            if self._graph.kinds[target] == "host":
                _widen(self._graph, target, parents, longest)
        return longest


#: for one destination: node -> (next node, cable), nearest nodes first
_Parents = dict[str, tuple[str, int]]


def _shortest_trees(graph: Graph) -> dict[str, _Parents]:
    import networkx as nx

    # Every cable is entered against its direction, so that one search from a destination finds all ways to it.
    reverse: nx.DiGraph[str] = nx.DiGraph()
    reverse.add_nodes_from(graph.kinds)
    for index, edge in enumerate(graph.edges):
        for node in (edge.a, edge.b):
            weight = round(edge.delay_from(node) * 1e9) * _NANOSECOND + _HOP
            old = reverse.get_edge_data(edge.other(node), node)
            if old is None or weight < old["weight"]:
                reverse.add_edge(edge.other(node), node, weight=weight, index=index)
    targets = [node for node, kind in graph.kinds.items() if kind != "switch"]
    return {target: _shortest_tree(graph, reverse, target) for target in targets}


def _shortest_tree(graph: Graph, reverse: nx.DiGraph[str], target: str) -> _Parents:
    import networkx as nx

    def weight(node: str, _peer: str, data: dict[str, int]) -> float | None:
        return data["weight"] if node == target or graph.passes(node) else None

    before, distance = nx.dijkstra_predecessor_and_distance(reverse, target, weight=weight)
    order = {name: number for number, name in enumerate(graph.kinds)}
    parents: _Parents = {}
    for node in sorted(distance, key=lambda name: (distance[name], order[name])):
        if node != target:
            parent = min(before[node], key=order.__getitem__)
            parents[node] = (parent, reverse[parent][node]["index"])
    return parents


def _first_hop(graph: Graph, source: str, parents: _Parents) -> Hop:
    node, edge = parents[source]
    while graph.kinds[node] == "switch":
        node, _ = parents[node]
    return Hop(node, edge)


def _widen(graph: Graph, target: str, parents: _Parents, longest: list[float]) -> None:
    """Raise each cable of a destination's tree to the longest round trip from a host through it to `target`."""
    distance = {target: 0.0}
    for node, (parent, edge) in parents.items():
        distance[node] = distance[parent] + graph.edges[edge].round_trip
    deepest = {node: distance[node] for node in parents if graph.kinds[node] == "host"}
    for node, (parent, edge) in reversed(parents.items()):
        if node in deepest:
            longest[edge] = max(longest[edge], deepest[node])
            deepest[parent] = max(deepest.get(parent, 0.0), deepest[node])


def _tree_hops(graph: Graph, source: str) -> dict[str, Hop]:
    hops: dict[str, Hop] = {}
    labels: dict[str, Hop | int] = {source: -1}
    queue = [source]
    for node in queue:
        label = labels[node]
        for peer, edge in graph.neighbours(node):
            if peer in labels:
                continue
            first = label if isinstance(label, Hop) else edge if node == source else label
            if graph.kinds[peer] != "switch":
                hops[peer] = first if isinstance(first, Hop) else Hop(peer, first)
                first = hops[peer]
            labels[peer] = first
            queue.append(peer)
    return hops


def _tree_round_trips(graph: Graph) -> list[float]:
    """The longest path through each cable of a tree: the deepest below it, itself, and the farthest beyond it."""
    order = list(_walk(graph))
    below: dict[str, list[float]] = {node: [0.0, 0.0] for node in graph.kinds}
    for node, parent, edge in reversed(order):
        depth = below[node][0] + graph.edges[edge].round_trip
        best, second = below[parent]
        below[parent] = [max(best, depth), max(min(best, depth), second)]
    beyond: dict[str, float] = {}
    longest = [0.0] * len(graph.edges)
    for node, parent, edge in order:
        own = graph.edges[edge].round_trip
        best, second = below[parent]
        sibling = second if below[node][0] + own >= best else best
        beyond[node] = own + max(beyond.get(parent, 0.0), sibling)
        longest[edge] = beyond[node] + below[node][0]
    return longest


def _walk(graph: Graph) -> Iterable[tuple[str, str, int]]:
    """(node, its parent, the cable between) of a tree, parents first."""
    root = next(iter(graph.kinds))
    queue, seen = [root], {root}
    for parent in queue:
        for node, edge in graph.neighbours(parent):
            if node not in seen:
                seen.add(node)
                queue.append(node)
                yield node, parent, edge
