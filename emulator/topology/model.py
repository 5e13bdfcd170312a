"""The topology file as typed models: every key with its unit, range, default and meaning.

The JSON schema (`emu schema`) and the errors derive from these. Nothing is resolved here: `expand.py` unfolds
counts and wildcards, `settle.py` merges defaults, groups and presets.
"""

import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Discriminator, Field, Tag, model_validator
from pydantic_core import PydanticCustomError

from emulator.core.clock import AUTO
from emulator.core.lab_id import NAME as LAB_NAME
from emulator.core.units import Cores, Delay, Rate, Share, Size
from emulator.devices import basis
from emulator.topology.impair import Jitter, Loss, Reorder
from emulator.topology.queue import Queue

MAX_NODES = 1000
#: beyond these no clock, rate or quota of a host can follow
MIN_TIME_SCALE, MAX_TIME_SCALE = 1e-4, 1e4
#: how a complaint's path tells the two forms of a time scale
_SCALE_TAGS = ("number", "auto")
NODE_NAME = re.compile(r"^[a-z0-9]([a-z0-9]|-(?!-)){0,61}$")
RESERVED = ("localhost", "ip6-localhost", "ip6-loopback")


def _node_name(name: str) -> str:
    if not NODE_NAME.match(name) or name.endswith("-"):
        raise ValueError(
            f"{name!r} is not a node name; use up to 62 of a-z, 0-9 and single -, beginning and ending with no -"
        )
    if name in RESERVED:
        raise ValueError(f"{name!r} is a name that every hosts file has; choose another")
    return name


def _lab_name(name: str) -> str:
    if not LAB_NAME.match(name):
        raise ValueError(f"{name!r} is not a lab name; use up to 40 of a-z, 0-9 and -")
    return name


def _scalar_or(scalar: str, mapping: str) -> Discriminator:
    return Discriminator(lambda value: mapping if isinstance(value, (dict, BaseModel)) else scalar)


def _list_or_text(value: Any) -> str:
    return "list" if isinstance(value, (list, tuple)) else "text"


def _basis(value: Any) -> Any:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        basis.check_factor(float(value))
        return float(value)
    named = isinstance(value, str) and value.startswith(basis.TRAIN) and value != basis.TRAIN
    if named or value in basis.NAMED:
        return value
    raise ValueError(f"{value!r} is no basis of calibration; write {basis.CHOICE}")


def _argv(command: str | tuple[str, ...]) -> tuple[str, ...]:
    if isinstance(command, tuple):
        words = command
    else:
        import shlex

        try:
            words = tuple(shlex.split(command))
        except ValueError as error:
            raise ValueError(f"{command!r} cannot be split ({error}); close the quote, or write a list") from None
    if not words:
        raise ValueError("there is no program in it; write one, or leave the key out")
    if any("\0" in word for word in words):
        raise ValueError("a NUL cannot be handed to a program; take it out")
    return words


def _env_name(name: str) -> str:
    if "=" in name or "\0" in name:
        raise ValueError(f"{name!r} cannot name a variable; take the '=' or NUL out")
    return name


def _env_value(value: str) -> str:
    if "\0" in value:
        raise ValueError("a NUL cannot be in a variable; take it out")
    return value


class Strict(BaseModel):
    """A mapping that refuses keys it does not know."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True, defer_build=True)

    @classmethod
    def keys(cls) -> list[str]:
        """The keys that a file may write."""
        return [item.alias or name for name, item in cls.model_fields.items()]

    @model_validator(mode="before")
    @classmethod
    def _known(cls, value: Any) -> Any:
        if isinstance(value, dict):
            known = cls.keys()
            for key in value:
                if key not in known:
                    raise PydanticCustomError("unknown_key", "unknown key", {"key": key, "known": known})
        return value


def _auto(text: str) -> str:
    if text != AUTO:
        raise ValueError(f"{text!r} is not a time scale; write {AUTO}, or a number like 0.2")
    return text


Text = Annotated[str, Field(min_length=1)]
Words = Annotated[Annotated[Text, Tag("text")] | Annotated[tuple[Text, ...], Tag("list")], Discriminator(_list_or_text)]
NodeName = Annotated[str, AfterValidator(_node_name)]
Natural = Annotated[int, Field(ge=0, strict=True)]
Calibrate = Annotated[float | str, BeforeValidator(_basis)]
#: real seconds for one emulated second, or AUTO
Scale = Annotated[
    Annotated[float, Field(ge=MIN_TIME_SCALE, le=MAX_TIME_SCALE, allow_inf_nan=False, strict=True), Tag(_SCALE_TAGS[0])]
    | Annotated[Literal["auto"], BeforeValidator(_auto), Tag(_SCALE_TAGS[1])],
    Discriminator(lambda value: _SCALE_TAGS[isinstance(value, str)]),
]
EnvName = Annotated[Text, AfterValidator(_env_name)]
EnvValue = Annotated[str, Field(coerce_numbers_to_str=True), AfterValidator(_env_value)]


class Direction(Strict):
    """What one direction of a link does to packets."""

    rate: Annotated[Rate | None, Field(description="bits per second; left out = not limited")] = None
    delay: Annotated[Delay | None, Field(description="one way")] = None
    jitter: Annotated[
        Jitter | None, Field(description="spread of the delay, at most the delay; order is kept, but with `reorder`")
    ] = None
    loss: Annotated[Loss | None, Field(description="share of packets lost, under 100 %, or a model of loss")] = None
    queue: Annotated[Queue | None, Field(description="what may wait for the line: a size, packets or a time")] = None
    reorder: Annotated[
        Reorder | None, Field(description="true: jitter reorders packets; a share: so many of them skip the delay")
    ] = None
    duplicate: Annotated[Share | None, Field(description="share of packets that are sent twice")] = None
    corrupt: Annotated[Share | None, Field(description="share of packets that arrive with one wrong bit")] = None


DirectionOrRate = Annotated[
    Annotated[Rate, Tag("rate")] | Annotated[Direction, Tag("direction")], _scalar_or("rate", "direction")
]


class Shape(Direction):
    """A link's settings; those of `Direction` hold both ways, `up` and `down` override them one way."""

    preset: Annotated[Text | None, Field(description="a known kind of line; other keys here override it")] = None
    rtt: Annotated[Delay | None, Field(description="round trip: half of it each way, instead of `delay`")] = None
    up: Annotated[DirectionOrRate | None, Field(description="away from the node that names the preset")] = None
    down: Annotated[DirectionOrRate | None, Field(description="towards the node that names the preset")] = None
    overhead: Annotated[int | None, Field(ge=0, le=200, strict=True, description="bytes a packet on the line")] = None
    mtu: Annotated[int | None, Field(ge=576, le=65535, strict=True, description="largest IP packet, bytes")] = None


PresetOrShape = Annotated[
    Annotated[Text, Tag("preset")] | Annotated[Shape, Tag("shape")], _scalar_or("preset", "shape")
]


class HostFields(Strict):
    """What a node, a group and the defaults may all say."""

    device: Annotated[Text | None, Field(description="a device profile; left out = server (not limited)")] = None
    role: Annotated[Text | None, Field(description="its part in a training: parameter_server, worker")] = None
    cpus: Annotated[Cores | None, Field(description="cores of the device; left out = all")] = None
    memory: Annotated[Size | None, Field(description="left out = the device's")] = None
    calibrate: Annotated[
        Calibrate | None,
        Field(
            description="what the device is compared with this host by: auto, sgemm, linpack, sevenzip, train:MODEL, "
            "or the host cores that one of its cores is worth at time scale 1; left out = auto"
        ),
    ] = None
    pids: Annotated[int | None, Field(ge=16, le=4_000_000, strict=True, description="most processes")] = None
    command: Annotated[
        Annotated[Words, AfterValidator(_argv)] | None,
        Field(description="a program of its own: text, split as a shell does, or a list"),
    ] = None
    restart: Annotated[
        Literal["no", "on-failure", "always"] | None, Field(description="when `command` ends; left out = no")
    ] = None
    env: Annotated[dict[EnvName, EnvValue] | None, Field(description="environment of `command`")] = None
    image: Annotated[Text | None, Field(description="container image (runtime docker); left out = one of emu's")] = None
    arch: Annotated[
        Literal["amd64", "arm64"] | None,
        Field(description="the image's processor (docker); left out = the host's"),
    ] = None
    uplink: Annotated[
        PresetOrShape | None, Field(description="the line by which it is connected: a preset or link settings")
    ] = None


class Group(HostFields):
    """Settings that nodes share."""

    extends: Annotated[Text | None, Field(description="a group whose settings this one starts from")] = None


class Defaults(HostFields):
    """Settings of every host that says nothing else."""

    group: Annotated[Text | None, Field(description="the group of hosts that name none")] = None


GroupOrCounts = Annotated[
    Annotated[Text, Tag("name")]
    | Annotated[dict[Text, Annotated[int, Field(ge=1, le=MAX_NODES, strict=True)]], Tag("counts")],
    _scalar_or("name", "counts"),
]


class Node(HostFields):
    """A node, or `count` of them."""

    kind: Annotated[Literal["host", "switch", "router"], Field(description="hosts run programs")] = "host"
    count: Annotated[int | None, Field(ge=1, le=MAX_NODES, strict=True, description="makes name-1 to name-<count>")] = (
        None
    )
    group: Annotated[
        GroupOrCounts | None, Field(description="its group; with a count also {group: how many, ...} in this order")
    ] = None


class Link(Shape):
    """A cable between two nodes, or a set of cables."""

    from_: Annotated[
        Words, Field(alias="from", description="node, wildcard (worker-*), group:NAME, or a list; `up` leads away")
    ]
    to: Annotated[Words, Field(description="as `from`")]
    name: Annotated[Text | None, Field(description="left out = from--to; tells parallel cables apart")] = None


class TopologyFile(Strict):
    """A cluster: its nodes and the links between them."""

    name: Annotated[str, AfterValidator(_lab_name)] | None = Field(None, description="left out = the file's name")
    description: str | None = Field(None, description="for people")
    seed: Natural = Field(0, description="feeds every random stream")
    time_scale: Scale = Field(1.0, description="real seconds for one emulated second, or auto")
    defaults: Defaults | None = None
    groups: dict[Text, Group | None] | None = None
    nodes: dict[NodeName, Node | None]
    links: tuple[Link, ...] | None = None
