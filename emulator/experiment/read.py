"""An experiment file, with what the command line overrides, -> a checked `Experiment`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from emulator.core.errors import ExperimentError, TopologyError
from emulator.core.paths import expanded
from emulator.experiment.explain import explain, nearest
from emulator.experiment.find import find
from emulator.training.spec import Variant, Workload

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pydantic import BaseModel

    from emulator.core.yaml_file import Document
    from emulator.experiment.model import ExperimentModel

    ModelType = TypeVar("ModelType", bound=BaseModel)

TRAINING, LINPACK = "training", "linpack"
#: the kinds of experiment, by the `kind` in their files
KINDS = (TRAINING, LINPACK)
#: the exchange's own choice
_NO_COMPRESSOR = {"none": ""}
_FORM = "write `topology`, `variants`, `budget` and `evaluate_every`, as docs/experiments.md shows"


@dataclass(frozen=True)
class Experiment:
    """A checked experiment: `name` is its file's, `model` what it says after overrides."""

    name: str
    path: Path
    model: ExperimentModel

    @property
    def topology(self) -> Path:
        """The topology file, relative to the experiment's own directory."""
        return (self.path.parent / expanded(self.model.topology)).resolve()

    @property
    def workload(self) -> Workload:
        """The workload as roles get it, with plug-in files made absolute."""
        from emulator.training.plugins import absolute

        base = self.path.parent
        fields = self.model.workload.model_dump()
        return Workload(**fields | {key: absolute(fields[key], base) for key in ("model", "dataset")})

    @property
    def variants(self) -> list[Variant]:
        """The variants as roles get them, in the file's order."""
        from emulator.training.plugins import absolute

        base = self.path.parent
        return [
            Variant(
                name=name,
                exchange=absolute(item.exchange, base),
                compressor=absolute(item.compressor, base),
                learning_rate=item.learning_rate,
                compression=item.c,
                options=item.options,
            )
            for name, item in self.model.variants.items()
        ]

    def resolved(self) -> dict[str, Any]:
        """What experiment.json holds: everything that was decided, in base units."""
        from dataclasses import asdict

        model = self.model
        return {
            "name": self.name,
            "description": model.description,
            "topology": model.topology,
            "workload": asdict(self.workload),
            "variants": [asdict(variant) for variant in self.variants],
            "baseline": model.dense_baseline(),
            "budget": float(model.budget),
            "evaluate_every": float(model.evaluate_every),
            "evaluate_last": float(model.evaluate_last or model.evaluate_every),
            "max_updates": model.max_updates,
            "save_parameters": model.save_parameters,
            "time_scale": model.time_scale,
            "seed": model.seed,
            "repeats": model.repeats,
        }


def read(text: str | Path, overrides: Mapping[str, object] | None = None) -> Experiment:
    """Read the experiment called `text` (a name or a file) and apply `overrides` ({"workload.batch": 20}).

    Raises ExperimentError with file, line and the nearest right key.
    """
    from emulator.experiment.model import ExperimentModel

    path, document = document_of(text)
    experiment = Experiment(path.stem, path.resolve(), model_of(document, ExperimentModel, overrides or {}))
    _check_plugins(experiment, document.where)
    return experiment


def document_of(text: str | Path) -> tuple[Path, Document]:
    """The file of the experiment called `text` and what is written there; raises ExperimentError."""
    from emulator.core.yaml_file import read as read_yaml

    path = find(str(text))
    try:
        return path, read_yaml(path)
    except TopologyError as error:
        fix = _FORM if "topology" in error.fix or "nodes" in error.fix else error.fix
        raise ExperimentError(error.what, where=error.where, fix=fix) from None


def kind_of(document: Document) -> str:
    """Which kind of experiment is written there; raises ExperimentError for one that emu does not know."""
    kind = document.data.get("kind", TRAINING)
    if kind not in KINDS:
        fix = nearest(str(kind), KINDS)
        raise ExperimentError(f"there is no kind {kind!r} of experiment", where=document.where("kind"), fix=fix)
    return str(kind)


def model_of(document: Document, kind: type[ModelType], overrides: Mapping[str, object]) -> ModelType:
    """What is written there as a model, with `overrides`; raises ExperimentError."""
    from pydantic import ValidationError

    try:
        model = kind.model_validate(document.data)
    except ValidationError as error:
        raise explain(error, kind, document.where) from None
    for key, value in overrides.items():
        model = _override(model, key, value)
    return model


def _override(model: ModelType, key: str, value: object) -> ModelType:
    from pydantic import ValidationError

    raw = model.model_dump()
    steps = key.split(".")
    where = f"--set {key}={value}"
    current: Any = raw
    for number, step in enumerate(steps):
        free = "options" in steps[:number]
        if not isinstance(current, dict) or (step not in current and not free):
            known = current if isinstance(current, dict) and current else {}
            at = ".".join(steps[:number]) or "an experiment"
            fix = nearest(step, known) if known else f"set {at!r} itself"
            raise ExperimentError(f"{at} has no key {step!r}", where=where, fix=fix)
        if number == len(steps) - 1:
            current[step] = value
        else:
            current = current.setdefault(step, {}) if free else current[step]
    try:
        return type(model).model_validate(raw)
    except ValidationError as error:
        raise explain(error, type(model), lambda *_: where) from None


def parse_setting(text: str) -> tuple[str, object]:
    """`key=value` of the command line; the value is read as YAML, so that 20, true, null and [1, 2] are what they seem.

    Raises ExperimentError.
    """
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise ExperimentError("it is not key=value", where=f"--set {text}", fix="write it like workload.batch=20")
    try:
        return key.strip(), YAML(typ="safe", pure=True).load(value)
    except YAMLError:
        raise ExperimentError("the value is not YAML", where=f"--set {text}", fix="put the value in quotes") from None


def _check_plugins(experiment: Experiment, where: Callable[..., str]) -> None:
    """See that every named plug-in exists before anything is made; ours are not imported, for some import torch."""
    from emulator.training import compressors, data, exchanges, models, plugins

    workload = experiment.workload
    asked: list[tuple[tuple[str, ...], str, str, Mapping[str, str]]] = [
        (("workload", "model"), "models", workload.model, models.NAMES),
        (("workload", "dataset"), "datasets", workload.dataset, data.NAMES),
    ]
    for variant in experiment.variants:
        at = ("variants", variant.name)
        asked.append(((*at, "exchange"), "exchanges", variant.exchange, exchanges.NAMES))
        asked.append(((*at, "compressor"), "compressors", variant.compressor, compressors.NAMES | _NO_COMPRESSOR))
    for steps, group, name, ours in asked:
        if name in ours:
            continue
        try:
            plugins.find(group, name, ours)
        except ExperimentError as error:
            raise ExperimentError(error.what, where=where(*steps), fix=error.fix) from None
