"""What a file says of losses, jitter and order, in its several forms, as frozen values; a mistake is a ValueError."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from emulator.core import loss as models
from emulator.core import spread
from emulator.core.loss import LossModel
from emulator.core.units import Delay, Share

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


class Written:
    """A value of a topology file that reads itself: `parse` raises ValueError with the accepted forms."""

    EXAMPLE: ClassVar[str]

    @classmethod
    def parse(cls, value: object) -> Any:
        raise NotImplementedError

    @classmethod
    def __get_pydantic_core_schema__(cls, _source: object, _handler: object) -> Any:
        from pydantic_core import core_schema

        return core_schema.no_info_plain_validator_function(cls.parse)

    @classmethod
    def __get_pydantic_json_schema__(cls, _schema: object, _handler: object) -> dict[str, Any]:
        return {"description": f"like {cls.EXAMPLE}"}


def _read(value: Mapping[Any, Any], readers: Mapping[str, Callable[[Any], Any]], noun: str) -> dict[str, Any]:
    """The mapping's values, each read by its key's reader; raises ValueError for an unknown key."""
    found = {}
    for key, given in value.items():
        if key not in readers:
            raise ValueError(f"{noun} has no {key!r}; use {', '.join(readers)}")
        try:
            found[key] = readers[key](given)
        except ValueError as error:
            raise ValueError(f"`{key}`: {error}") from None
    return found


def _probability(value: Any) -> float:
    share = Share.parse(value)
    if share > 1:
        raise ValueError(f"{value!r} is more than 100 %; write it like '25 %'")
    return float(share)


def _correlation(value: Any) -> float:
    share = _probability(value)
    if share >= 1:
        raise ValueError("a correlation of 100 % would never change; keep it under that")
    return share


def _count(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValueError(f"{value!r} is not a number of packets; write it like 5")
    return value


def _mean(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 1 <= value <= 1e6:
        raise ValueError(f"{value!r} is not a mean number of packets; write it like 8")
    return float(value)


@dataclass(frozen=True)
class Loss(Written):
    """Losses of that share in the long run: independent, or by a model."""

    share: Share
    model: LossModel | None = None

    EXAMPLE: ClassVar[str] = "'1 %', {share: 1 %, burst: 8} or {p: 1 %, r: 30 %}"

    @classmethod
    def parse(cls, value: object) -> Loss:
        """Read a share, or {share, burst | correlation}, or a model's own parameters."""
        if isinstance(value, Loss):
            return value
        if not isinstance(value, dict):
            return cls(Share(_probability(value)))
        readers: dict[str, Callable[[Any], Any]] = {"share": _probability, "burst": _mean, "correlation": _correlation}
        for names in models.PARAMETERS.values():
            readers |= dict.fromkeys(names, _probability)
        said = _read(value, readers, "a loss")
        for kind, names in models.PARAMETERS.items():
            if not set(said) & set(names):
                continue
            if set(said) - set(names):
                raise ValueError(f"{', '.join(said)} do not go together; write it like {cls.EXAMPLE}")
            return cls._of_model(kind, said)
        if "share" not in said or {"burst", "correlation"} <= set(said):
            raise ValueError(f"write a loss like {cls.EXAMPLE}")
        return cls._of_share(**said)

    @classmethod
    def _of_model(cls, kind: models.Kind, said: Mapping[str, float]) -> Loss:
        defaults = {"1-h": 1.0, "1-k": 0.0, "p32": 0.0, "p23": 0.0, "p14": 0.0}
        missing = [name for name in models.PARAMETERS[kind] if name not in said and name not in defaults]
        if missing:
            raise ValueError(f"the {kind} model needs {', '.join(missing)} as well")
        model = LossModel(kind, tuple(said.get(name, defaults.get(name, 0.0)) for name in models.PARAMETERS[kind]))
        if model.problem:
            raise ValueError(f"{model.problem}; change it")
        return cls(Share(model.share), model)

    @classmethod
    def _of_share(cls, share: float, burst: float | None = None, correlation: float = 0.0) -> Loss:
        if share >= 1 or not share or (burst is None and not correlation):
            return cls(Share(share))
        if burst is None:
            return cls(Share(share), models.correlated(share, correlation))
        model = models.gilbert(share, burst)
        if model.problem:
            raise ValueError(f"a share of {share * 100:g} % has longer bursts than {burst:g}; raise `burst`")
        return cls(Share(share), model)


@dataclass(frozen=True)
class Jitter(Written):
    """How much the delay spreads, and how. `amount` None: as much as the samples in the file `path` do."""

    amount: Delay | None
    spread: spread.Spread | None = None
    path: str = ""

    EXAMPLE: ClassVar[str] = "'5 ms' or {amount: 5 ms, distribution: normal}"

    @classmethod
    def parse(cls, value: object) -> Jitter:
        """Read a time, or {amount, distribution, correlation}; a distribution that has no known name is a file."""
        if isinstance(value, Jitter):
            return value
        if not isinstance(value, dict):
            return cls(Delay.parse(value))
        readers = {"amount": Delay.parse, "distribution": _text, "correlation": _correlation}
        said = _read(value, readers, "a jitter")
        name = said.get("distribution", spread.NAMES[0])
        known = name in spread.NAMES
        if known and "amount" not in said:
            raise ValueError(f"`amount` is missing; write a jitter like {cls.EXAMPLE}")
        if not known and "/" not in name and "." not in name:
            raise ValueError(f"no distribution is named {name!r}; use {', '.join(spread.NAMES)} or a file of delays")
        shape = spread.Spread(name, (), said.get("correlation", 0.0))
        return cls(said.get("amount"), None if shape == spread.Spread() else shape, "" if known else name)


@dataclass(frozen=True)
class Reorder(Written):
    """Whether packets may pass one another: by their jitter, or by a share of them that skips the delay."""

    jitter: bool = False
    share: Share = Share(0)
    gap: int = 1

    EXAMPLE: ClassVar[str] = "true, '25 %' or {share: 25 %, gap: 5}"

    @classmethod
    def parse(cls, value: object) -> Reorder:
        """Read true or false, a share, or {share, gap}."""
        if isinstance(value, Reorder):
            return value
        if isinstance(value, bool):
            return cls(jitter=value)
        if not isinstance(value, dict):
            return cls(share=Share(_probability(value)))
        said = _read(value, {"share": _probability, "gap": _count, "jitter": _flag}, "a reordering")
        if "share" not in said:
            raise ValueError(f"`share` is missing; write it like {cls.EXAMPLE}")
        return cls(said.get("jitter", False), Share(said["share"]), said.get("gap", 1))


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError(f"{value!r} is not a name; use {', '.join(spread.NAMES)} or a file of delays")
    return value


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"{value!r} is not true or false")
    return value


def samples(text: str) -> list[float]:
    """The delays of a file, in seconds: one a line, with a unit or in ms; empty lines and # comments are skipped.

    Raises ValueError with the line that is none.
    """
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        words = line.partition("#")[0].strip()
        if not words:
            continue
        try:
            found.append(float(words) / 1000 if _is_number(words) else float(Delay.parse(words)))
        except ValueError as error:
            raise ValueError(f"line {number}: {error}") from None
        if found[-1] < 0:
            raise ValueError(f"line {number}: a delay cannot be {words}")
    return found


def _is_number(words: str) -> bool:
    try:
        float(words)
    except ValueError:
        return False
    return True
