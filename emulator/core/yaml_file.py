"""YAML text -> plain data, and the line of every key and item in it.

ruamel.yaml composes the node graph (with its marks); the plain data is built here, because only so does each
value keep its line and a repeated key, an endless alias or a huge file get a sentence of its own.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from emulator.core.errors import TopologyError

if TYPE_CHECKING:
    from pathlib import Path

Step = str | int
MAX_BYTES = 4 << 20
MAX_VALUES = 200_000


@dataclass
class Document:
    """A file's plain data, and the line (from 1) on which each path into it begins."""

    path: str
    data: dict[str, Any] = field(default_factory=dict)
    lines: dict[tuple[Step, ...], int] = field(default_factory=dict)

    def where(self, *steps: Step) -> str:
        """`file:line` of the deepest part of the path that is written in the file."""
        return f"{self.path}:{self.lines.get(self.written(*steps), 1)}"

    def written(self, *steps: Step) -> tuple[Step, ...]:
        """The part of the path that is written in the file; steps that are not (tags, defaults) are left out."""
        at: tuple[Step, ...] = ()
        for step in steps:
            if (*at, step) in self.lines:
                at = (*at, step)
        return at


def read(path: Path) -> Document:
    """Read a YAML file whose top is a mapping; raises TopologyError with file and line for anything else."""
    return parse(_text(path), str(path))


def parse(text: str, path: str) -> Document:
    """As `read`, for text that is at hand; `path` is what errors call it."""
    from ruamel.yaml import YAML
    from ruamel.yaml.error import MarkedYAMLError, YAMLError
    from ruamel.yaml.nodes import MappingNode

    try:
        yaml = YAML(typ="safe", pure=True)
        root = yaml.compose(text)
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"{path}:{mark.line + 1}" if mark else path
        raise TopologyError(
            f"this is not YAML ({error.problem or error.context})", where=where, fix="mend the line, or the one above"
        ) from None
    except (YAMLError, ValueError) as error:
        raise TopologyError(
            f"this is not YAML ({str(error).splitlines()[0]})", where=path, fix="give a text file in YAML"
        ) from None
    except RecursionError:
        raise TopologyError("this file is nested too deeply", where=path, fix="give a topology file") from None
    if root is None:
        raise TopologyError("this file is empty", where=path, fix="write at least `nodes:` with one node")
    if not isinstance(root, MappingNode):
        line = root.start_mark.line + 1
        raise TopologyError(
            "this file does not hold a mapping", where=f"{path}:{line}", fix="begin with `nodes:` and `links:`"
        )
    document = Document(path)
    document.data = _Builder(document, yaml.constructor).build(root, ())
    return document


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_BYTES + 1)
    except IsADirectoryError:
        raise TopologyError("this is a directory", where=str(path), fix="name a topology file in it") from None
    except FileNotFoundError:
        raise TopologyError("there is no such file", where=str(path), fix="check the path") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise TopologyError(
            f"this file cannot be read ({reason})",
            where=repr(str(path))[1:-1],
            fix="check the path and its permissions",
        ) from None
    if len(raw) > MAX_BYTES:
        raise TopologyError("this file is larger than 4 MiB", where=str(path), fix="name a topology file")
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        raise TopologyError(
            "this is not text in UTF-8", where=f"{path}:{line}", fix="name a topology file, saved as UTF-8"
        ) from None


class _Builder:
    """Builds plain data from a composed node graph, noting lines."""

    def __init__(self, document: Document, scalars: Any) -> None:
        self._document = document
        self._scalars = scalars
        self._open: list[int] = []
        self._count = 0

    def build(self, node: Any, at: tuple[Step, ...]) -> Any:
        from ruamel.yaml.nodes import MappingNode, SequenceNode

        line = node.start_mark.line + 1
        self._document.lines.setdefault(at, line)
        self._count += 1
        if self._count > MAX_VALUES or id(node) in self._open:
            what = "an alias contains itself" if id(node) in self._open else "the aliases make this file huge"
            raise TopologyError(what, where=self._at(line), fix="write the values out")
        if not isinstance(node, (MappingNode, SequenceNode)):
            return self._scalar(node, line)
        self._open.append(id(node))
        value = self._mapping(node, at) if isinstance(node, MappingNode) else self._sequence(node, at)
        self._open.pop()
        return value

    def _at(self, line: int) -> str:
        return f"{self._document.path}:{line}"

    def _scalar(self, node: Any, line: int) -> Any:
        from ruamel.yaml.error import YAMLError

        try:
            value = self._scalars.construct_object(node)
        except (YAMLError, ValueError, OverflowError):
            raise TopologyError(
                f"{node.value!r} cannot be read as {node.tag}", where=self._at(line), fix="write it in quotes"
            ) from None
        # Only what JSON knows: a date or a set is never meant in a topology.
        return value if isinstance(value, (str, int, float, bool, type(None))) else str(node.value)

    def _sequence(self, node: Any, at: tuple[Step, ...]) -> list[Any]:
        return [self.build(item, (*at, index)) for index, item in enumerate(node.value)]

    def _mapping(self, node: Any, at: tuple[Step, ...]) -> dict[str, Any]:
        result: dict[str, Any] = {}
        merged: dict[str, Any] = {}
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            if key_node.tag.endswith(":merge"):
                merged |= self._merge(value_node, at, line)
                continue
            key = self._key(key_node, line)
            path = (*at, key)
            if key in result:
                raise TopologyError(
                    f"{key!r} is written twice (first on line {self._document.lines[path]})",
                    where=self._at(line),
                    fix="keep one, or give it another name",
                )
            self._document.lines[path] = line
            result[key] = self.build(value_node, path)
        return {**merged, **result}

    def _key(self, node: Any, line: int) -> str:
        if not isinstance(node.value, str) or not node.value:
            raise TopologyError("a key must be plain text", where=self._at(line), fix="write `key: value`")
        return node.value

    def _merge(self, node: Any, at: tuple[Step, ...], line: int) -> dict[str, Any]:
        value = self.build(node, (*at, "<<"))
        parts = value if isinstance(value, list) else [value]
        if not all(isinstance(part, dict) for part in parts):
            raise TopologyError("`<<` merges mappings only", where=self._at(line), fix="name the anchor of a mapping")
        return {key: item for part in reversed(parts) for key, item in part.items()}
