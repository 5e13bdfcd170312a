"""Messages on the Plan's links, as flows.

The model: a pair of nodes has one connection, whose messages go one after another. A message is a train of full TCP
packets (headers and the link's overhead are counted, loss p lengthens it by 1 / (1 - p)); its bytes flow over all
links of the route at once (cut-through) at the speed of the tightest share, shared max-min fairly with the other
connections in each direction. It has arrived when its last byte has left, plus all delays of the route, each with its
jitter. Not modelled: slow start, congestion control, queues (nothing is ever dropped), that losses come in bursts,
duplicates, corruption, packets out of order (a connection delivers in order), processing in routers.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from emulator.core.rng import light
from emulator.links.deviations import deviations
from emulator.links.model import TCP_HEADERS
from emulator.simulation.fluid import Fluid
from emulator.simulation.routes import Hop, Routes

if TYPE_CHECKING:
    from collections.abc import Callable

    from emulator.core.plan import Plan


@dataclass
class Connection:
    """What waits between two nodes, in order; `last` is the latest arrival given out."""

    route: tuple[Hop, ...]
    waiting: deque[tuple[int, Callable[[], None]]] = field(default_factory=deque)
    busy: bool = False
    last: float = 0.0


class Network:
    """The links of a Plan on a simpy environment."""

    def __init__(self, env: Any, plan: Plan) -> None:
        self._env = env
        self._routes = Routes(plan)
        self._deviate: dict[Any, Callable[[], float]] = {}
        self._connections: dict[tuple[str, str], Connection] = {}
        lines: dict[Any, float] = {}
        rng = light(plan.seed, "simulation", "jitter")
        for hop in self._routes.hops:
            self._deviate[hop.key] = deviations(hop.impairment.spread, rng)
            if hop.impairment.rate is not None:
                lines[hop.key] = float(hop.impairment.rate) / 8
        self._lines = Fluid(env, lines)

    def send(self, sender: str, receiver: str, nbytes: int, deliver: Callable[[], None]) -> None:
        """Take a message; `deliver` is called when it has arrived. Raises TopologyError if there is no route."""
        pair = sender, receiver
        if pair not in self._connections:
            self._connections[pair] = Connection(self._routes.between(sender, receiver))
        connection = self._connections[pair]
        connection.waiting.append((nbytes, deliver))
        if not connection.busy:
            connection.busy = True
            self._env.process(self._carry(connection))

    def _carry(self, connection: Connection) -> Any:
        route = connection.route
        while connection.waiting:
            nbytes, deliver = connection.waiting.popleft()
            if any(hop.impairment.loss >= 1 or hop.impairment.cut for hop in route):
                continue
            yield self._lines.start(_on_the_line(nbytes, route), [hop.key for hop in route]).done
            arrival = self._env.now + sum(self._delay(hop) for hop in route)
            connection.last = max(connection.last, arrival)
            self._at(connection.last - self._env.now, deliver)
        connection.busy = False

    def _delay(self, hop: Hop) -> float:
        delay, jitter = float(hop.impairment.delay), float(hop.impairment.jitter)
        return max(0.0, delay + self._deviate[hop.key]() * jitter) if jitter else delay

    def _at(self, delay: float, deliver: Callable[[], None]) -> None:
        self._env.timeout(delay).callbacks.append(lambda _event: deliver())


def _on_the_line(nbytes: int, route: tuple[Hop, ...]) -> float:
    """Bytes that the route's dearest link must carry for a message."""
    return max((_cost(nbytes, hop) for hop in route), default=0.0)


def _cost(nbytes: int, hop: Hop) -> float:
    packets = max(1, math.ceil(nbytes / (hop.mtu - TCP_HEADERS)))
    return (nbytes + packets * (TCP_HEADERS + hop.impairment.overhead)) / (1 - hop.impairment.loss)
