"""Each mistake in a topology file is one sentence with file, line and remedy, and has exit code 10."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from emulator.core.errors import TopologyError, UsageError
from emulator.topology import load, load_plan
from tests.unit.topology.cluster import HOST, plan_of

PAIR = "nodes: {a: , b: }\nlinks:\n  - {from: a, to: b}\n"
CASES = {
    "unknown key": ("nodes:\n  a:\n    devcie: rpi-4", 3, "unknown key 'devcie'", "did you mean 'device'?"),
    "unknown key at the top": ("nodes: {a: }\nlink: []", 2, "unknown key 'link'", "did you mean 'links'?"),
    "unknown key in a direction": (PAIR[:-2] + ", up: {rte: 1 Mbit}}", 3, "unknown key 'rte'", "'rate'"),
    "no unit": ("nodes:\n  a: {memory: 4}", 2, "`memory`: 4 has no unit", "'4 GiB'"),
    "wrong unit": ("nodes:\n  a: {memory: 4 Gbit}", 2, "'Gbit' is not a unit of a size", "use one of GiB"),
    "wrong unit of a rate": (PAIR[:-2] + ", rate: 5 ms}", 3, "'ms' is not a unit of a rate", "'20 Mbit'"),
    "negative rate": (PAIR[:-2] + ", rate: -5 Mbit}", 3, "a rate cannot be '-5 Mbit'", "not negative"),
    "rate of zero": (PAIR[:-2] + ", rate: 0 Mbit}", 3, "a rate of 0 lets nothing through", "give a rate"),
    "all lost": (PAIR[:-2] + ", loss: 1}", 3, "a loss of 100 %", "'1 %'"),
    "jitter over delay": (PAIR[:-2] + ", delay: 1 ms, jitter: 2 ms}", 3, "a jitter of 2 ms", "within the delay"),
    "rtt and delay": (PAIR[:-2] + ", delay: 1 ms, rtt: 2 ms}", 3, "two ways to say the same", "keep one"),
    "long delay": (PAIR[:-2] + ", delay: 2 min}", 3, "too long", "within 60 s"),
    "queue in time": (PAIR[:-2] + ", queue: 5 ms}", 3, "a queue in time needs a rate", "in bytes"),
    "odd queue": (PAIR[:-2] + ", queue: 5 cars}", 3, "'5 cars' is not a queue", "'100 packets'"),
    "empty queue": (PAIR[:-2] + ", queue: 0 packets}", 3, "a queue cannot be '0 packets'", "at least one packet"),
    "duplicate node": ("nodes:\n  a:\n  b:\n  a:", 4, "'a' is written twice (first on line 2)", "another name"),
    "duplicate by count": ("nodes:\n  a: {count: 2}\n  a-1:", 3, "node 'a-1' is made twice", "another name"),
    "no such node": ("nodes: {worker: , core: }\nlinks:\n - {from: wroker, to: core}", 3, "'wroker'", "'worker'?"),
    "base of a count": ("nodes: {w: {count: 2}, c: }\nlinks: [{from: w, to: c}]", 2, "no node 'w'", "write 'w-*'"),
    "wildcard of nothing": (PAIR + "  - {from: x*, to: b}", 4, "no node matches 'x*'", "name one"),
    "group of none": ("groups: {g: }\nnodes: {a: }\nlinks: [{from: group:f, to: a}]", 3, "group 'f'", "use one of g"),
    "self link": ("nodes: {a: }\nlinks:\n  - {from: a, to: a}", 3, "links 'a' to itself", "two different nodes"),
    "link twice": (PAIR + "  - {from: b, to: a}", 4, "'b--a' is there already (at file.yaml:3)", "`name`"),
    "link name twice": (
        PAIR[:-2] + ", name: x}\n  - {from: a, to: b, name: x}", 4, "'x' is there already", "a `name` of its own",
    ),
    "one name for many": ("nodes: {a: {count: 2}, b: }\nlinks: [{from: a-*, to: b, name: x}]", 2, "2 links", "leave"),
    "loop of groups": (
        "groups:\n  a: {extends: b}\n  b: {extends: c}\n  c: {extends: a}\nnodes: {n: }", 4, "a -> b -> c -> a", "take",
    ),
    "group extends itself": ("groups:\n  a: {extends: a}\nnodes: {n: }", 2, "a -> a", "take one `extends` out"),
    "loop by the defaults": (
        "defaults: {group: a}\ngroups:\n  a: {extends: b}\n  b: {extends: a}\nnodes: {n: }", 4, "a -> b -> a", "take",
    ),
    "unknown group": ("groups: {home: }\nnodes:\n  a: {group: hoem}", 3, "no group 'hoem'", "'home'?"),
    "unknown parent": ("groups:\n  a: {extends: b}\nnodes: {n: }", 2, "no group 'b'", "use one of a"),
    "unknown default group": ("defaults: {group: x}\nnodes: {n: }", 1, "no group 'x'", "add it"),
    "memory over host": ("nodes:\n  a: {memory: 17 GiB}", 2, "node 'a': 17 GiB of memory are more", "smaller"),
    "no memory": ("nodes:\n  a: {memory: 1 kB}", 2, "too little", "16 MiB"),
    "cores over device": ("nodes:\n  a:\n    device: rpi-4\n    cpus: 5", 4, "rpi-4 has 4 cores, not 5", "at most 4"),
    "no cores": ("nodes:\n  a: {cpus: 0}", 2, "0 cores run nothing", "0.5"),
    "unknown device": ("nodes:\n  a: {device: rpi4}", 2, "no device 'rpi4'", "'rpi-4'?"),
    "device by default": ("defaults:\n  device: rpi-6\nnodes: {a: }", 2, "no device 'rpi-6'", "did you mean"),
    "unknown preset": ("nodes: {a: {uplink: fiber}, b: }\nlinks: [{from: a, to: b}]", 1, "'fiber'", "'fibre'?"),
    "unknown preset of a link": (PAIR[:-2] + ", preset: dls}", 3, "no link preset 'dls'", "'dsl'?"),
    "two uplinks": (
        "nodes: {a: {uplink: dsl}, b: {uplink: lan}}\nlinks:\n  - {from: a, to: b}", 3, "both name an uplink", "router",
    ),
    "time scale of zero": ("nodes: {a: }\ntime_scale: 0", 2, "`time_scale` cannot be 0", "at least 0.0001"),
    "negative time scale": ("nodes: {a: }\ntime_scale: -1", 2, "`time_scale` cannot be -1", "at least 0.0001"),
    "tiny time scale": ("nodes: {a: }\ntime_scale: 1.0e-300", 2, "`time_scale` cannot be 1e-300", "at least 0.0001"),
    "huge time scale": ("nodes: {a: }\ntime_scale: 20000", 2, "`time_scale` cannot be 20000", "at most 10000"),
    "endless time scale": ("nodes: {a: }\ntime_scale: .inf", 2, "`time_scale` cannot be inf", "finite"),
    "zero count": ("nodes:\n  a: {count: 0}", 2, "`count` cannot be 0", "at least 1"),
    "huge count": ("nodes:\n  a: {count: 1000000}", 2, "`count` cannot be 1000000", "at most 1000"),
    "huge sum": ("nodes: {a: {count: 600}, b: {count: 600}}", 1, "1200 nodes are more", "keep to 1000"),
    "count is no number": ("nodes:\n  a: {count: many}", 2, "`count` cannot be 'many'", "a whole number"),
    "counts disagree": ("groups: {g: }\nnodes:\n  a: {count: 3, group: {g: 2}}", 3, "says 3", "make them agree"),
    "huge group": ("groups: {g: , h: }\nnodes:\n  a: {group: {g: 900, h: 900}}", 3, "1800 nodes", "keep to 1000"),
    "node name": ("nodes:\n  Worker 1:", 2, "'Worker 1' is not a node name", "a-z"),
    "node name with two dashes": ("nodes:\n  a--b:", 2, "'a--b' is not a node name", "single -"),
    "reserved name": ("nodes:\n  localhost:", 2, "'localhost' is a name", "choose another"),
    "long name": (f"nodes:\n  {'a' * 61}: {{count: 10}}", 2, "is too long", "shorten"),
    "lab name": ("name: My Lab\nnodes: {a: }", 1, "'My Lab' is not a lab name", "a-z"),
    "kind": ("nodes:\n  a: {kind: swich}", 2, "`kind` cannot be 'swich'", "'switch'?"),
    "open quote": ("nodes:\n  a: {command: \"sh -c 'x\"}", 2, "(No closing quotation)", "close the quote"),
    "no program": ("nodes:\n  a: {command: []}", 2, "`command`: there is no program in it", "write one"),
    "role of a switch": ("nodes:\n  s: {kind: switch, role: worker}\n  a: ", 2, "a switch has no `role`", "remove it"),
    "no host": ("nodes:\n  r: {kind: router}", 1, "there is no host", "add a node"),
    "no nodes": ("nodes: {}", 1, "there is no node", "add one"),
    "nodes empty": ("nodes:", 1, "`nodes` is empty", "write a mapping"),
    "no share of cores": ("nodes:\n  a: {cpus: .nan}", 2, "nan is not a number of cores", "'0.5'"),
    "variable with =": ("nodes:\n  a: {env: {'A=B': x}}", 2, "'A=B' cannot name a variable", "take the '='"),
    "variable with NUL": ('nodes:\n  a: {env: {"A\\0": x}}', 2, "cannot name a variable", "NUL"),
    "NUL in a variable": ('nodes:\n  a:\n    env:\n      A: "x\\0y"', 4, "`A`: a NUL cannot be", "take it out"),
    "NUL in a command": ('nodes:\n  a: {command: ["x\\0y"]}', 2, "a NUL cannot be handed", "take it out"),
    "nodes missing": ("links: []", 1, "`nodes` is missing", "add it"),
    "end missing": ("nodes: {a: }\nlinks:\n  - {from: a}", 3, "`to` is missing", "add it"),
    "links no list": ("nodes: {a: }\nlinks: {a: b}", 2, "`links` cannot be", "write a list"),
    "node no mapping": ("nodes:\n  a: 3", 2, "`a` cannot be 3", "write a mapping"),
    "loop of switches": (
        "nodes: {s: {count: 3, kind: switch}, a: }\nlinks:\n  - {from: s-*, to: s-*}\n  - {from: a, to: s-1}",
        3, "closes a loop of switches", "a router",
    ),
    "plugged twice": (
        "nodes: {s: {count: 2, kind: switch}, a: }\nlinks:\n  - {from: s-1, to: s-2}\n  - {from: a, to: s-*}",
        4, "'a' is plugged twice", "remove one",
    ),
    "mixed mtu": (
        "nodes: {s: {kind: switch}, a: , b: }\nlinks:\n  - {from: a, to: s}\n  - {from: b, to: s, mtu: 9000}",
        4, "mtu of 9000", "the same mtu",
    ),
    "through a host": (
        "nodes: {a: , b: , c: }\nlinks:\n  - {from: a, to: b}\n  - {from: b, to: c}", 2, "only through the host 'b'",
        "`kind: router`",
    ),
    "between routers by a host": (
        "nodes: {r: {count: 2, kind: router}, h: }\nlinks:\n  - {from: h, to: r-*}", 2, "only through the host 'h'",
        "`kind: router`",
    ),
    "not yaml": ("nodes: [", 1, "this is not YAML", "mend"),
    "two documents": ("nodes: {a: }\n---\nnodes: {b: }", 2, "this is not YAML", "mend"),
    "tab": ("nodes:\n\ta: 1", 2, "this is not YAML", "mend"),
    "empty": ("", None, "this file is empty", "`nodes:`"),
    "comment only": ("# nothing\n", None, "this file is empty", "`nodes:`"),
    "a list": ("- a\n- b", 1, "does not hold a mapping", "`nodes:`"),
    "deep": ("a: " + "[" * 5000, None, "nested too deeply", "topology file"),
    "endless alias": ("a: &x [*x]", 1, "an alias contains itself", "write the values out"),
    "python object": ("nodes: !!python/object:os.system x", 1, "cannot be read", "in quotes"),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_a_mistake_is_told_with_its_line_and_remedy(name: str) -> None:
    text, line, what, fix = CASES[name]
    with pytest.raises(TopologyError) as caught:
        plan_of(text)
    error = caught.value
    assert error.where == ("file.yaml" if line is None else f"file.yaml:{line}"), str(error)
    assert what in error.what
    assert fix in error.fix
    assert error.exit_code == 10
    assert "\n" not in str(error)


def test_the_parts_of_a_disconnected_cluster_are_named() -> None:
    with pytest.raises(TopologyError, match=re.escape("2 parts: a-1, a-2 | b-1, b-2; add a link between them")):
        plan_of(
            """
            nodes: {a: {count: 2}, b: {count: 2}}
            links:
              - {from: a-1, to: a-2}
              - {from: b-1, to: b-2}
            """
        )


def test_aliases_that_multiply_are_stopped() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    with pytest.raises(TopologyError, match="aliases make this file huge"):
        plan_of("\n".join(lines))


@pytest.mark.parametrize(
    ("argument", "where"),
    [({"time_scale": 0}, "--time-scale"), ({"time_scale": float("nan")}, "--time-scale"),
     ({"time_scale": 1e-300}, "--time-scale"), ({"time_scale": 1e30}, "--time-scale"), ({"seed": -1}, "--seed"),
     ({"name": "A b"}, "--name")],
)  # fmt: skip
def test_an_argument_that_cannot_be_is_a_usage_error(argument: dict[str, object], where: str) -> None:
    with pytest.raises(UsageError) as caught:
        plan_of("nodes: {a: }", **argument)
    assert caught.value.where == where
    assert caught.value.exit_code == 2


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    junk = tmp_path / "junk.yaml"
    junk.write_bytes(b"nodes:\n\x00\xff\xfe\x01")
    huge = tmp_path / "huge.yaml"
    huge.write_bytes(b"#" * (5 << 20))
    cases = {
        tmp_path / "absent.yaml": "there is no such file; check the path",
        tmp_path: "this is a directory; name a topology file in it",
        junk: ":2: this is not text in UTF-8",
        huge: "this file is larger than 4 MiB",
        Path("/proc/self/mem"): "this file cannot be read",
        tmp_path / ("n" * 300): "this file cannot be read (File name too long)",
        Path("nul\0byte"): "this file cannot be read",
    }
    for path, sentence in cases.items():
        with pytest.raises(TopologyError) as caught:
            load(path)
        assert sentence in str(caught.value), path
        assert caught.value.exit_code == 10


def test_control_characters_are_not_yaml(tmp_path: Path) -> None:
    path = tmp_path / "odd.yaml"
    path.write_bytes(b"nodes: \x01\x02")
    with pytest.raises(TopologyError, match="this is not YAML"):
        load(path)


def test_an_error_names_the_file_as_it_was_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bad.yaml").write_text("nodes:\n  a: {memory: 64 GiB}\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(TopologyError) as caught:
        load_plan("bad.yaml", host=HOST)
    assert str(caught.value).startswith("bad.yaml:2: node 'a': 64 GiB")
