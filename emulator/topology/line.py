"""What a link finally does each way: a preset or the uplink of one of its ends, and its own keys over it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from emulator.core.errors import TopologyError
from emulator.core.plan import Impairment
from emulator.core.spread import of_samples
from emulator.core.units import Delay, Rate, Share, Size
from emulator.topology import presets
from emulator.topology.explain import nearest
from emulator.topology.impair import Reorder, samples
from emulator.topology.model import Direction, Shape
from emulator.topology.queue import default

if TYPE_CHECKING:
    from collections.abc import Mapping

    from emulator.core.loss import LossModel
    from emulator.core.spread import Spread
    from emulator.core.yaml_file import Document, Step
    from emulator.topology.expand import OneLink
    from emulator.topology.impair import Jitter
    from emulator.topology.queue import Queue
    from emulator.topology.settle import Settled


class Nic(NamedTuple):
    """The network port of a device: the rate of its line, each way, with Ethernet's bytes a frame."""

    device: str
    rate: Rate


@dataclass(frozen=True)
class OneWay:
    """One direction, settled but for its default queue. `nic` is the device whose network port sets its rate."""

    rate: Rate | None = None
    delay: Delay = Delay(0)
    jitter: Delay = Delay(0)
    loss: Share = Share(0)
    queue: Queue | None = None
    nic: str = ""
    spread: Spread | None = None
    loss_model: LossModel | None = None
    reorder: Reorder = field(default_factory=Reorder)
    duplicate: Share = Share(0)
    corrupt: Share = Share(0)

    def within(self, nic: Nic) -> OneWay:
        """This direction, no faster than a network port at one of its ends."""
        if self.rate is not None and self.rate <= nic.rate:
            return self
        return replace(self, rate=nic.rate, nic=nic.device)

    def over(self, spec: Direction | Rate | None, files: Samples) -> OneWay:
        """This direction with what `spec` says (a bare rate says just that) laid over it."""
        if spec is None or isinstance(spec, Rate):
            return self if spec is None else replace(self, rate=spec)
        said = {name: getattr(spec, name) for name in ("rate", "delay", "queue", "reorder", "duplicate", "corrupt")}
        if isinstance(spec, Shape) and spec.rtt is not None:
            said["delay"] = Delay(spec.rtt / 2)
        if spec.loss is not None:
            said |= {"loss": spec.loss.share}
        if spec.jitter is not None:
            amount, mean, spread = files.of(spec.jitter)
            said |= {"jitter": amount, "delay": said["delay"] or mean}
        found = replace(self, **{name: value for name, value in said.items() if value is not None})
        if spec.loss is not None:
            found = replace(found, loss_model=spec.loss.model)
        return found if spec.jitter is None else replace(found, spread=spread)


class Samples:
    """Reads the files of delays that a topology's distributions name, from beside the topology's own file."""

    def __init__(self, document: Document, steps: tuple[Step, ...]) -> None:
        self._document, self._steps = document, steps

    def of(self, jitter: Jitter) -> tuple[Delay, Delay | None, Spread | None]:
        """The jitter, the mean of a file's delays (None without one), and the shape. Raises TopologyError."""
        if not jitter.path or jitter.spread is None:
            return jitter.amount or Delay(0), None, jitter.spread
        path = Path(self._document.path).parent / jitter.path
        try:
            mean, deviation, kept = of_samples(samples(path.read_text()))
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else str(error)
            raise TopologyError(
                f"the distribution {jitter.path} cannot be used ({why})",
                where=self._document.where(*self._steps, "jitter"),
                fix="name a file with one delay a line, in ms or with a unit",
            ) from None
        amount = Delay(deviation) if jitter.amount is None else jitter.amount
        return amount, Delay(mean), replace(jitter.spread, samples=kept)


@dataclass(frozen=True)
class Line:
    """Both directions of a link: `up` leads from its first end to its second."""

    up: OneWay = field(default_factory=OneWay)
    down: OneWay = field(default_factory=OneWay)
    preset: str | None = None
    source: str = ""
    overhead: int = 0
    mtu: int = 1500

    def turned(self) -> Line:
        """The same line seen from its other end."""
        return replace(self, up=self.down, down=self.up)

    def over(self, shape: Shape, steps: tuple[Step, ...], document: Document) -> Line:
        """This line with a shape laid over it; a preset in the shape begins anew."""
        if shape.rtt is not None and shape.delay is not None:
            raise TopologyError(
                "`rtt` and `delay` are two ways to say the same", where=document.where(*steps, "rtt"), fix="keep one"
            )
        line = _of_preset(shape.preset, (*steps, "preset"), document) if shape.preset else self
        files = Samples(document, steps)
        return replace(
            line,
            up=line.up.over(shape, files).over(shape.up, files),
            down=line.down.over(shape, files).over(shape.down, files),
            overhead=line.overhead if shape.overhead is None else shape.overhead,
            mtu=line.mtu if shape.mtu is None else shape.mtu,
        )


def settle(link: OneLink, nodes: dict[str, Settled], document: Document, nics: Mapping[str, Nic]) -> Line:
    """The line of a link, no faster than the network ports of its ends (`nics`, by node, where known).

    Raises TopologyError for what no line can do.
    """
    line = Line() if link.spec.preset else _by_uplink(link, nodes, document)
    line = line.over(link.spec, link.steps, document)
    for nic in (nics[end] for end in (link.a, link.b) if end in nics):
        line = replace(line, up=line.up.within(nic), down=line.down.within(nic))
    check_line(line, link.steps, document)
    return line


def check_line(line: Line, steps: tuple[Step, ...], document: Document) -> None:
    """Raise TopologyError for what no line can do, said at `steps` of the document."""
    for way, key in ((line.up, "up"), (line.down, "down")):
        _check(way, line, (*steps, key), document)


def impairment(way: OneWay, line: Line, longest: Delay) -> Impairment:
    """The direction as the Plan has it; `longest` is the longest round trip that uses it."""
    overhead = max(line.overhead, presets.ETHERNET_OVERHEAD) if way.nic else line.overhead
    queue = default(way.rate, longest)
    if way.queue is not None and way.queue.amount:
        queue = way.queue.size(way.rate, line.mtu + (overhead if way.queue.packets else 0))
    return Impairment(
        rate=way.rate,
        delay=way.delay,
        jitter=way.jitter,
        loss=way.loss,
        queue=Size(queue),
        overhead=overhead,
        spread=way.spread if way.jitter else None,
        reorder=way.reorder.jitter,
        loss_model=way.loss_model,
        duplicate=way.duplicate,
        corrupt=way.corrupt,
        early=way.reorder.share,
        early_gap=way.reorder.gap,
        queue_packets=way.queue.packets if way.queue else None,
        codel=way.queue.codel if way.queue else None,
    )


def _by_uplink(link: OneLink, nodes: dict[str, Settled], document: Document) -> Line:
    ends = [end for end in (link.a, link.b) if "uplink" in nodes[end].values]
    if not ends:
        return Line()
    if len(ends) == 2:
        raise TopologyError(
            f"{link.a!r} and {link.b!r} both name an uplink",
            where=document.where(*link.steps),
            fix="give the link a preset of its own, or connect them by a router",
        )
    settled = nodes[ends[0]]
    uplink, steps = settled.values["uplink"], settled.steps["uplink"]
    line = _of_preset(uplink, steps, document) if isinstance(uplink, str) else Line().over(uplink, steps, document)
    return line if ends[0] == link.a else line.turned()


def _of_preset(name: str, steps: tuple[Step, ...], document: Document) -> Line:
    try:
        preset = presets.find(name)
    except KeyError:
        fix = nearest(name, presets.NAMES)
        raise TopologyError(f"there is no link preset {name!r}", where=document.where(*steps), fix=fix) from None
    up = OneWay(preset.up, preset.delay, loss=preset.loss)
    return Line(up, replace(up, rate=preset.down), preset.name, preset.source, preset.overhead)


def _check(way: OneWay, line: Line, steps: tuple[Step, ...], document: Document) -> None:
    where = document.where(*steps)
    if way.rate is not None and way.rate <= 0:
        raise TopologyError("a rate of 0 lets nothing through", where=where, fix="give a rate, or remove the link")
    if way.loss >= 1:
        raise TopologyError(
            f"a loss of {way.loss * 100:g} % lets nothing through", where=where, fix="write it like '1 %'"
        )
    if way.jitter > way.delay:
        raise TopologyError(
            f"a jitter of {way.jitter} is more than the delay of {way.delay}",
            where=where,
            fix="keep it within the delay",
        )
    for name, share in (("duplicate", way.duplicate), ("corrupt", way.corrupt)):
        if share > 1:
            raise TopologyError(
                f"a {name} of {share * 100:g} % is more than all", where=where, fix="write it like '1 %'"
            )
    if way.queue is not None and way.queue.codel is not None and way.rate is None:
        raise TopologyError("a queue that is managed needs a rate", where=where, fix="give a rate, or leave `aqm` out")
    if way.delay > 60:
        raise TopologyError(f"a delay of {way.delay} is too long", where=where, fix="keep it within 60 s")
    if way.queue is not None:
        try:
            way.queue.size(way.rate, line.mtu)
        except ValueError as error:
            what, _, fix = str(error).partition("; ")
            raise TopologyError(what, where=where, fix=fix) from None
