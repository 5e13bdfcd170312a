"""AdaComp against a slow reference written straight from the paper's definition."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emulator.training import compressors, exchanges
from emulator.training.compressors.top_k import largest
from emulator.training.exchanges.base import StalePush
from emulator.training.layout import Layout
from emulator.training.spec import Variant

VARIANT = Variant("adacomp", "adacomp", learning_rate=0.1, compression=0.3)
LAYOUT = Layout(((3, 4), (4,), (2, 2, 2), (1,)))


def reference_select(gradients: list[np.ndarray], c: float) -> list[dict[int, float]]:
    """Per variable, {flat index: value} of the k entries of largest magnitude."""
    chosen = []
    for gradient in gradients:
        flat = gradient.ravel()
        k = max(1, int(flat.size * c))
        best = sorted(range(flat.size), key=lambda i: (-abs(float(flat[i])), i))[:k]
        chosen.append({i: float(flat[i]) for i in best})
    return chosen


class Reference:
    """The server of the definition: every update's touched (variable, index) pairs kept for ever."""

    def __init__(self, learning_rate: float) -> None:
        self.learning_rate = learning_rate
        self.history: list[set[tuple[int, int]]] = []

    def apply(self, parameters: list[np.ndarray], push: list[dict[int, float]], pulled: int) -> float:
        sigmas = []
        for v, entries in enumerate(push):
            for i, g in entries.items():
                sigma = sum((v, i) in touched for touched in self.history[pulled:])
                sigmas.append(sigma)
                step = np.float32(self.learning_rate) * np.float32(g) / np.float32(max(1, sigma))
                parameters[v].ravel()[i] -= step
        self.history.append({(v, i) for v, entries in enumerate(push) for i in entries})
        return float(np.mean(sigmas))


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.lists(st.integers(0, 6), min_size=1, max_size=25), st.booleans())
def test_agrees_with_the_definition(seed: int, delays: list[int], prune: bool) -> None:
    rng = np.random.default_rng(seed)
    server = exchanges.build(VARIANT, LAYOUT, 0)
    worker = exchanges.build(VARIANT, LAYOUT, 0)
    reference = Reference(VARIANT.learning_rate)
    parameters = rng.standard_normal(LAYOUT.size).astype(np.float32)
    expected = [part.copy() for part in LAYOUT.split(parameters)]
    pulls = [max(0, t - delay) for t, delay in enumerate(delays)]
    for t, pulled in enumerate(pulls):
        gradients = [rng.standard_normal(shape).astype(np.float32) for shape in LAYOUT.shapes]
        push = worker.select(gradients)
        chosen = reference_select(gradients, VARIANT.compression)
        assert {int(i) for i in push[1]} == {
            i + start for entries, start in zip(chosen, LAYOUT.offsets, strict=True) for i in entries
        }
        if prune:
            server.forget(min(pulls[t:]))
        applied = server.apply(parameters, push, pulled)
        assert applied.sigma_mean == pytest.approx(reference.apply(expected, chosen, pulled))
        assert applied.staleness == t - pulled
        np.testing.assert_allclose(parameters, LAYOUT.join(expected), rtol=1e-6, atol=1e-7)


@given(st.lists(st.sampled_from([-2.0, -1.0, 0.0, 1.0, 2.0, 3.0]), min_size=1, max_size=40), st.integers(1, 40))
def test_selection_takes_exactly_k_and_the_first_of_equals(values: list[float], k: int) -> None:
    variable = np.array(values, np.float32)
    k = min(k, variable.size)
    best = sorted(sorted(range(variable.size), key=lambda i: (-abs(values[i]), i))[:k])
    assert largest(variable, k).tolist() == best


@settings(max_examples=200, deadline=None)
@given(
    st.integers(0, 2**32 - 1),
    st.integers(1, 5000),
    st.sampled_from([0.0001, 0.01, 0.2, 0.9]),
    st.sampled_from([0.0, 0.5, 0.9, 0.999, 1.0]),
    st.sampled_from([0.0, 0.01]),
    st.booleans(),
)
def test_selection_is_exact_where_most_are_zero_or_equal_or_broken(
    seed: int, n: int, share: float, zeros: float, broken: float, rounded: bool
) -> None:
    """Long enough for the sampled bound to matter; a NaN goes before an infinity, that before any number."""
    rng, k = np.random.default_rng(seed), max(1, int(n * share))
    variable = rng.standard_normal(n).astype(np.float32)
    variable = np.round(variable) if rounded else variable
    variable[rng.random(n) < zeros] = 0
    variable[rng.random(n) < broken] = np.nan
    variable[rng.random(n) < broken] = -np.inf
    rank = np.where(np.isnan(variable), 2, np.where(np.isinf(variable), 1, 0))
    finite = np.where(rank > 0, 0, np.abs(variable))
    best = np.lexsort((np.arange(n), -finite, -rank))[:k]
    assert largest(variable, k).tolist() == sorted(best.tolist())


@given(st.integers(0, 2**32 - 1), st.sampled_from([0.001, 0.01, 0.3, 1.0]))
def test_what_is_compressed_comes_back(seed: int, c: float) -> None:
    rng = np.random.default_rng(seed)
    gradients = [rng.standard_normal(shape).astype(np.float32) for shape in LAYOUT.shapes]
    flat = LAYOUT.join(gradients)
    top = compressors.build("top-k", LAYOUT, replace(VARIANT, compression=c), 0)
    update = top.decompress(top.compress(gradients))
    assert update.indices is not None
    np.testing.assert_array_equal(update.values, flat[update.indices])
    dense = compressors.build("dense", LAYOUT, VARIANT, 0)
    np.testing.assert_array_equal(dense.decompress(dense.compress(gradients)).values, flat)


def test_the_history_is_bounded_and_an_older_push_refused() -> None:
    bounded = replace(VARIANT, options={"history_bytes": 3 * 4 * 7})  # three pushes of 3 + 1 + 2 + 1 entries
    server, rng = exchanges.build(bounded, LAYOUT, 0), np.random.default_rng(0)
    parameters = np.zeros(LAYOUT.size, np.float32)
    gradients = [rng.standard_normal(shape).astype(np.float32) for shape in LAYOUT.shapes]
    for t in range(5):
        server.apply(parameters, server.select(gradients), t)
    before = parameters.copy()
    with pytest.raises(StalePush, match="iteration 1 is older than the history, which starts at 2"):
        server.apply(parameters, server.select(gradients), 1)
    np.testing.assert_array_equal(parameters, before)
    assert server.iteration == 5
    assert server.apply(parameters, server.select(gradients), 2).sigma_mean == 3
