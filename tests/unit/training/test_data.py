"""Where data lies, who gets which samples, and in what order."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from emulator.core.errors import DataError, ExperimentError
from emulator.core.rng import stream
from emulator.devices.calibration import cache_file
from emulator.training import data
from emulator.training.data.base import Samples
from emulator.training.data.batches import Batches, prepared
from emulator.training.data.sharding import indices
from emulator.training.spec import Workload

LABELS = np.arange(60_000) % 10


def test_the_cache_directory_goes_by_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("EMU_DATA_DIR", str(tmp_path / "here"))
    assert data.directory() == tmp_path / "here"
    monkeypatch.delenv("EMU_DATA_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert data.directory() == tmp_path / "emu" / "data"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert data.directory() == tmp_path / ".cache" / "emu" / "data"


def test_a_user_without_a_home_has_a_cache_directory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("EMU_DATA_DIR", "XDG_CACHE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)

    def no_entry(_uid: int) -> None:
        raise KeyError("uid not found")

    monkeypatch.setattr("pwd.getpwuid", no_entry)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    assert data.directory() == tmp_path / f"emu-{os.geteuid()}" / "data"
    assert cache_file() == tmp_path / f"emu-{os.geteuid()}" / "calibration.json"
    monkeypatch.setenv("EMU_DATA_DIR", "~/data")
    with pytest.raises(DataError, match=r"EMU_DATA_DIR: ~/data: .*; set it to a path without ~"):
        data.directory()


def test_what_a_data_set_plug_in_raises_names_it(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(
        "class A:\n description = ''\n def fetch(self, folder, say):\n  raise ValueError('no such row')\n"
        " def load(self, folder, part): return 1 / 0\n def cached(self, folder): folder.no_such\n"
        "class B(A):\n def __init__(self, needed): ...\n"
    )
    name = f"{path}:A"
    with pytest.raises(DataError, match=r"mine.py:A: its fetch failed \(ValueError: no such row\) at line 4; mend it"):
        data.fetch(name, tmp_path)
    with pytest.raises(DataError, match=r"its load failed .ZeroDivisionError.* at line 5"):
        data.load(name, tmp_path, "train")
    with pytest.raises(DataError, match=r"its cached failed .AttributeError"):
        data.cached(name, tmp_path)
    with pytest.raises(ExperimentError, match=r"mine.py:B: it cannot be made .TypeError: .*needed"):
        data.fetch(f"{path}:B", tmp_path)


def test_a_bug_of_ours_stays_loud(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("emulator.training.data.synthetic._make", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        data.fetch("synthetic-mnist", tmp_path)


def test_synthetic_data_is_the_same_each_time_and_mapped(tmp_path: Path) -> None:
    first, second = (data.fetch("synthetic-mnist", tmp_path / name) for name in "ab")
    assert data.cached("synthetic-mnist", first) == 10_205_048
    assert data.cached("mnist", first) is None
    for part in ("train", "test"):
        a, b = (data.load("synthetic-mnist", root, part) for root in (first, second))
        assert isinstance(a.images, np.memmap)
        assert a.images.shape[1:] == (28, 28)
        np.testing.assert_array_equal(a.images, b.images)
        np.testing.assert_array_equal(a.labels, b.labels)


def test_contiguous_shards_are_neighbouring_runs_of_fifty() -> None:
    workload = Workload(sharding="contiguous", shards=1200)
    assert indices(workload, LABELS, 3, 1200, 0).tolist() == list(range(150, 200))
    assert indices(workload, LABELS, 9, 10, 0).tolist() == list(range(54_000, 60_000))
    parts = [indices(workload, LABELS, worker, 7, 0) for worker in range(7)]
    assert np.concatenate(parts).tolist() == list(range(60_000))
    assert all(part[0] % 50 == 0 for part in parts)


@pytest.mark.parametrize("sharding", ["iid", "dirichlet"])
def test_seeded_shardings_share_out_all_samples_once(sharding: str) -> None:
    workload = Workload(sharding=sharding, alpha=0.5)
    parts = [indices(workload, LABELS, worker, 6, 3) for worker in range(6)]
    assert sorted(np.concatenate(parts).tolist()) == list(range(60_000))
    np.testing.assert_array_equal(parts[2], indices(workload, LABELS, 2, 6, 3))
    assert not np.array_equal(parts[2], indices(workload, LABELS, 2, 6, 4))


def test_a_small_alpha_makes_labels_uneven_and_a_large_one_even() -> None:
    def largest_share(alpha: float) -> float:
        mine = LABELS[indices(Workload(sharding="dirichlet", alpha=alpha), LABELS, 0, 10, 0)]
        return float(np.bincount(mine, minlength=10).max() / len(mine))

    assert largest_share(1000.0) < 0.12
    assert largest_share(0.1) > 0.3


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"sharding": "odd"}, "no sharding is called 'odd'; use contiguous, iid or dirichlet"),
        ({"shards": 4}, "worker 0 of 10 gets no samples"),
        ({"sharding": "dirichlet", "alpha": 0.0}, "alpha 0.0 is not positive"),
    ],
)
def test_a_sharding_that_cannot_be_is_an_error(change: dict[str, object], says: str) -> None:
    with pytest.raises(ExperimentError, match=says):
        indices(replace(Workload(), **change), LABELS, 0, 10, 0)  # type: ignore[arg-type]


def test_an_epoch_has_every_sample_once_in_an_order_of_its_own() -> None:
    samples = Samples(np.arange(40, dtype=np.uint8).reshape(40, 1, 1), np.arange(40, dtype=np.uint8))
    batches = Batches(samples, np.arange(10, 30), 5, stream(0, "w"), standardize=False)
    epochs = [np.concatenate([batches.next()[1] for _ in range(4)]).tolist() for _ in range(2)]
    assert [sorted(epoch) for epoch in epochs] == [list(range(10, 30))] * 2
    assert epochs[0] != epochs[1]


def test_a_batch_larger_than_the_shard_goes_around() -> None:
    samples = Samples(np.zeros((4, 1, 1), np.uint8), np.arange(4, dtype=np.uint8))
    _, labels = Batches(samples, np.arange(4), 10, stream(0, "w"), standardize=False).next()
    assert np.bincount(labels).min() >= 2


def test_images_are_standardised_one_by_one_and_blank_ones_stay_finite() -> None:
    images = np.random.default_rng(0).integers(0, 256, (3, 28, 28)).astype(np.uint8)
    images[2] = 7
    pixels = prepared(images, True)
    assert pixels.dtype == np.float32
    np.testing.assert_allclose(pixels.mean((1, 2)), 0, atol=1e-5)
    np.testing.assert_allclose(pixels.std((1, 2)), [1, 1, 0], atol=1e-5)
    assert prepared(images, False).max() <= 1
