"""Other settings for a link that is there: `key=value` words, each as a topology file's link has it, laid over it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from emulator.core.errors import UsageError
from emulator.core.units import Delay

if TYPE_CHECKING:
    from collections.abc import Sequence

    from emulator.core.plan import Impairment, LinkPlan
    from emulator.core.yaml_file import Document
    from emulator.topology.line import Line, OneWay
    from emulator.topology.model import Shape

#: what errors call the place of what was written
COMMAND_LINE = "command line"


def reshape(link: LinkPlan, words: Sequence[str]) -> LinkPlan:
    """The link with the settings of `words` ("delay=40 ms", "up={loss: 2 %}"); what they do not name stays as it is.

    Its queue stays too, in bytes or packets, if it is not named, and a link that is cut stays cut. Raises UsageError
    for what is no setting, TopologyError for one that no line can have.
    """
    from emulator.topology.line import Line, check_line

    document = _document(words)
    shape = _shape(document)
    before = Line(
        _one_way(link.a_to_b), _one_way(link.b_to_a), link.preset, link.source, link.a_to_b.overhead, link.mtu
    )
    line = before.over(shape, (), document)
    check_line(line, (), document)
    return replace(
        link,
        a_to_b=_impairment(line.up, line, link.a_to_b),
        b_to_a=_impairment(line.down, line, link.b_to_a),
        preset=line.preset,
        source=line.source,
    )


def _document(words: Sequence[str]) -> Document:
    from emulator.core.yaml_file import parse

    lines = []
    for word in words:
        key, sign, value = word.partition("=")
        if not sign or not key.strip() or not value.strip() or "\n" in word:
            raise UsageError(
                f"{word!r} is no setting", fix="write key=value, like delay='40 ms' or loss='{share: 1 %, burst: 8}'"
            )
        lines.append(f"{key.strip()}: {value.strip()}\n")
    if not lines:
        raise UsageError("no setting is given", fix="write key=value, like delay='40 ms'")
    return parse("".join(lines), COMMAND_LINE)


def _shape(document: Document) -> Shape:
    from pydantic import ValidationError

    from emulator.topology.explain import explain
    from emulator.topology.model import Shape

    if "mtu" in document.data:
        raise UsageError("the MTU of a link that is up stays as it is", fix="take the lab down and up with another")
    try:
        return Shape.model_validate(document.data)
    except ValidationError as error:
        raise explain(error, document) from None


def _one_way(one: Impairment) -> OneWay:
    from emulator.topology.impair import Reorder
    from emulator.topology.line import OneWay

    return OneWay(
        rate=one.rate,
        delay=one.delay,
        jitter=one.jitter,
        loss=one.loss,
        spread=one.spread,
        loss_model=one.loss_model,
        reorder=Reorder(one.reorder, one.early, one.early_gap),
        duplicate=one.duplicate,
        corrupt=one.corrupt,
    )


def _impairment(way: OneWay, line: Line, before: Impairment) -> Impairment:
    from emulator.topology.line import impairment

    found = replace(impairment(way, line, Delay(0)), cut=before.cut)
    if way.queue is None:
        return replace(found, queue=before.queue, queue_packets=before.queue_packets, codel=before.codel)
    return found if way.queue.amount else replace(found, queue=before.queue, queue_packets=before.queue_packets)
