"""What happens by chance on a link, against theory: losses in bursts, and the shapes of jitter."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest

from emulator.core import spread
from emulator.core.loss import LossModel, correlated, gilbert
from emulator.core.rng import light
from emulator.core.spread import Spread
from emulator.links.deviations import deviations
from emulator.links.losses import NEVER, losses


def lost(share: float, model: LossModel | None, packets: int) -> list[bool]:
    """Packet by packet, whether it is lost."""
    source = losses(share, model, light(1, "test", str(model)))
    found: list[bool] = []
    while source is not None and len(found) < packets:
        found += [False] * min(source.gap(), packets) + [True]
    return found[:packets] or [False] * packets


@pytest.mark.parametrize(
    "model",
    [
        LossModel("gilbert-elliott", (0.01, 0.2, 1.0, 0.0)),
        LossModel("gilbert-elliott", (0.05, 0.1, 0.4, 0.02)),
        LossModel("gilbert-elliott", (1.0, 1.0, 1.0, 0.0)),
        LossModel("4-state", (0.02, 0.3, 0.3, 0.4, 0.02)),
        LossModel("4-state", (0.0, 0.5, 0.0, 0.0, 0.1)),
        gilbert(0.05, 6),
        correlated(0.05, 0.5),
    ],
    ids=str,
)
def test_a_chain_loses_what_a_plain_one_step_by_step_does(model: LossModel) -> None:
    """Gaps are drawn in leaps; the kernel's own code, packet by packet, is the yardstick."""
    packets = 200_000
    leaps, steps = lost(0.5, model, packets), _stepwise(model, packets)
    assert not model.problem
    for found in (leaps, steps):
        assert sum(found) / packets == pytest.approx(model.share, rel=0.06)
        assert _mean_run(found) == pytest.approx(_mean_run(steps), rel=0.06)


def _stepwise(model: LossModel, packets: int) -> list[bool]:
    """loss_gilb_ell and loss_4state of net/sched/sch_netem.c, told anew."""
    rng, state, found = light(2, "steps"), 1, []
    for _ in range(packets):
        if model.kind == "gilbert-elliott":
            p, r, in_bad, in_good = model.parameters
            found.append(rng.random() < (in_good if state == 1 else in_bad))
            if rng.random() < (p if state == 1 else r):
                state = 3 - state
            continue
        p13, p31, p32, p23, p14 = model.parameters
        draw = rng.random()
        following = {
            1: 4 if draw < p14 else 3 if draw < p14 + p13 else 1,
            2: 3 if draw < p23 else 2,
            3: 2 if draw < p32 else 1 if draw < p32 + p31 else 3,
            4: 1,
        }
        state = following[state]
        found.append(state in (3, 4))
    return found


def _mean_run(found: list[bool]) -> float:
    starts = sum(after and not before for before, after in pairwise([False, *found]))
    return sum(found) / starts


def test_bursts_have_the_mean_that_was_asked_for() -> None:
    assert _mean_run(lost(0.05, gilbert(0.05, 6), 200_000)) == pytest.approx(6, rel=0.06)


def test_correlated_losses_keep_their_share() -> None:
    found = lost(0.05, correlated(0.05, 0.5), 200_000)
    both = sum(one and other for one, other in pairwise(found)) / sum(found)
    # P(lost | the one before was lost) = share + correlation (1 - share)
    assert both == pytest.approx(0.05 + 0.5 * 0.95, rel=0.05)


def test_no_loss_and_all_lost() -> None:
    assert losses(0.0, None, light(0)) is None
    everything = losses(1.0, gilbert(0.1, 3), light(0))
    assert everything is not None and [everything.gap() for _ in range(5)] == [0] * 5
    nothing = losses(0.5, LossModel("gilbert-elliott", (0.1, 0.1, 0.0, 0.0)), light(0))
    absorbed = losses(0.5, LossModel("gilbert-elliott", (0.0, 0.0, 1.0, 0.0)), light(0))
    assert absorbed is not None and absorbed.gap() == NEVER
    assert nothing is not None


@pytest.mark.parametrize("name", spread.NAMES)
def test_tables_add_nothing_to_the_delay(name: str) -> None:
    table = spread.named(name)
    mean = math.fsum(table) / len(table)
    deviation = math.sqrt(math.fsum(value**2 for value in table) / len(table))
    assert len(table) == spread.SIZE and list(table) == sorted(table)
    assert mean == pytest.approx(0, abs=1e-6)
    assert deviation == pytest.approx(1 / math.sqrt(3) if name == "uniform" else 1, abs=1e-5)
    assert max(map(abs, table)) <= spread.WIDEST


def test_the_normal_table_is_normal() -> None:
    table = spread.named("normal")
    assert sum(abs(value) < 1 for value in table) / len(table) == pytest.approx(0.6827, abs=0.001)
    assert sum(abs(value) < 2 for value in table) / len(table) == pytest.approx(0.9545, abs=0.001)


def test_many_samples_are_thinned_to_their_quantiles() -> None:
    draw = light(3)
    mean, deviation, kept = spread.of_samples([draw.expovariate(100) for _ in range(50_000)])
    assert len(kept) == spread.KEPT
    assert (mean, deviation) == (pytest.approx(0.01, rel=0.03), pytest.approx(0.01, rel=0.03))
    assert kept[len(kept) // 2] == pytest.approx(math.log(2) - 1, abs=0.05)  # the median of an exponential


@pytest.mark.parametrize("samples", [[], [1.0], [2.0, 2.0, 2.0]])
def test_a_distribution_of_no_spread_is_refused(samples: list[float]) -> None:
    with pytest.raises(ValueError, match="distribution"):
        spread.of_samples(samples)


@pytest.mark.parametrize("name", ["uniform", "pareto"])
def test_correlation_leaves_the_shape_as_it_is(name: str) -> None:
    deviate = deviations(Spread(name, (), 0.7), light(4))
    found = [deviate() for _ in range(40_000)]
    table = spread.named(name)
    for share in (0.1, 0.5, 0.9):
        assert sorted(found)[int(len(found) * share)] == pytest.approx(table[int(len(table) * share)], abs=0.06)
    ranked = [sum(pair) for pair in pairwise(found)]
    apart = sum(value**2 for value in ranked) / len(ranked) / (2 * sum(value**2 for value in found) / len(found)) - 1
    assert apart == pytest.approx(0.68, abs=0.12)  # a copula's correlation is a little less for a skewed shape
