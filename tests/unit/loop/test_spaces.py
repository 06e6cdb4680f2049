"""Contrastive columns on images: trained once, looked up ever after, shared by processes, blind to labels."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
import torch

import pixel_model  # noqa: F401  (registers the model)
from mqnet.data.images import ImagePool
from mqnet.data.labelled import Labelled
from mqnet.errors import ConfigError, StoreError
from mqnet.loop import coders
from mqnet.loop.advance import advance
from mqnet.loop.coders import CoderJob, FolderShelf, MemoryShelf, in_training, represent
from mqnet.loop.learner import ActiveLearner
from mqnet.loop.spaces import Spaces
from mqnet.models.checkpoints import Saver
from mqnet.models.contrastive.coder import Coder
from mqnet.models.contrastive.config import CoderConfig
from mqnet.oracles.simulated import SimulatedOracle, Truth

SMALL = CoderConfig(epochs=2, batch_size=8, precision="float32", rotations=1)
CLASSES = ("bright", "dark")
NEEDY = {"name": "sum", "purity": "csi", "informativeness": "margin"}


def pictures(n=40, seed=0):
    rng = np.random.default_rng(seed)
    labels = np.arange(n) % 3 - 1
    level = np.asarray([0, 120, 200])[labels + 1][:, None, None, None]
    return (level + rng.integers(0, 50, (n, 3, 8, 8))).astype(np.uint8), labels


class Watched(ImagePool):
    """A pool that remembers which items were read."""

    def __init__(self, images, ids):
        super().__init__(images, ids)
        self.read: list[str] = []

    def load(self, ids):
        self.read += list(ids)
        return super().load(ids)


def campaign(pool, labels, strategy=NEEDY, folder=None, **options):
    truth = Truth(pool.ids, labels, CLASSES)
    learner = ActiveLearner(
        pool, CLASSES, budget=4, rounds=3, strategy=strategy, model="pixels", coder=SMALL, folder=folder, truth=truth,
        **options,
    )  # fmt: skip
    return learner, SimulatedOracle(truth)


def run(learner, oracle):
    with learner:
        while advance(learner, oracle).state != "done":
            pass
        return learner.ledger


@pytest.fixture
def counted(monkeypatch):
    """How often a coder was trained, and how many images were encoded."""
    counts = {"trained": 0, "encoded": 0}
    train, encode = coders.train_coder, Coder.encode

    def training(*args, **kwargs):
        counts["trained"] += 1
        return train(*args, **kwargs)

    def encoding(self, images):
        counts["encoded"] += len(images)
        return encode(self, images)

    monkeypatch.setattr(coders, "train_coder", training)
    monkeypatch.setattr(Coder, "encode", encoding)
    return counts


@pytest.mark.parametrize("kept", [True, False], ids=["folder", "memory"])
def test_one_training_and_one_pass_over_the_pool_for_a_whole_campaign(counted, tmp_path, kept):
    pixels, labels = pictures()
    learner, oracle = campaign(ImagePool(pixels), labels, folder=tmp_path / "a" if kept else None)
    assert counted == {"trained": 0, "encoded": 0}  # opening trains nothing
    run(learner, oracle)
    assert counted == {"trained": 1, "encoded": 40}


def test_campaigns_share_a_folder_of_coders(counted, tmp_path):
    pixels, labels = pictures()
    for name, strategy in (("a", NEEDY), ("b", "ccal"), ("c", {"name": "ccal", "threshold": 0.5})):
        run(*campaign(ImagePool(pixels), labels, strategy, tmp_path / name, shared=tmp_path / "shared"))
    assert counted == {"trained": 2, "encoded": 80}  # csi and simclr
    run(*campaign(ImagePool(pixels), labels, NEEDY, tmp_path / "d", shared=tmp_path / "shared", seed=1))
    assert counted["trained"] == 3  # another seed, another coder


def test_nothing_is_trained_for_a_strategy_that_needs_no_space(counted, tmp_path):
    pixels, labels = pictures()
    learner, oracle = campaign(ImagePool(pixels), labels, "margin", tmp_path / "a")
    assert learner.config.coder == {}
    run(learner, oracle)
    assert counted == {"trained": 0, "encoded": 0}
    assert not (tmp_path / "a" / "shared").exists()


def test_columns_are_the_coders_view_of_each_item(tmp_path):
    pixels, labels = pictures()
    ids = [f"i{(7 * i) % 40}" for i in range(40)]  # not in the order of the rows
    pool = ImagePool(pixels, ids)
    learner, _ = campaign(pool, labels, "ccal", tmp_path / "a")
    some = pool.ids.select(["i3", "i30", "i4"])
    found = learner._spaces.of(some)
    learner.close()
    assert sorted(found) == ["contrastive", "contrastive_semantic"]
    assert not torch.equal(found["contrastive"], found["contrastive_semantic"])
    job = CoderJob("csi", SMALL, pool.fingerprint(), 0)
    coder = MemoryShelf().space(job, pool).coder
    # trained again from nothing: the same coder, so what was stored is what it says
    torch.testing.assert_close(found["contrastive"], coder.encode(pool.load(some)), rtol=1e-5, atol=1e-6)
    part = pool.subset(some)
    spaces = Spaces(part, frozenset({"contrastive"}), SMALL, 0, MemoryShelf())
    assert spaces.of(part.ids)["contrastive"].shape == (3, 64)


def test_a_view_has_the_columns_of_pool_labelled_and_reserved_items(tmp_path):
    pixels, labels = pictures(60)
    pool = ImagePool(pixels[:40], [f"p{i}" for i in range(40)])
    reserved = Labelled(ImagePool(pixels[40:], [f"r{i}" for i in range(20)]), labels[40:])
    learner, oracle = campaign(
        pool, labels[:40], {"name": "mqnet", "purity": "csi", "informativeness": "margin", "validation": "random"},
        tmp_path / "a", validation=reserved,
    )  # fmt: skip
    run(learner, oracle)
    with ActiveLearner.open(tmp_path / "a", pool) as again:
        assert again.config.coder == SMALL.model_dump()
        again._validation = reserved
        _, view = again.view(2)
    n = len(view.labelled)
    assert [len(part.columns["contrastive"]) for part in (view, view.labelled, view.validation)] == [40 - n, n, 20]
    space = FolderShelf(tmp_path / "a" / "shared").space(CoderJob("csi", SMALL, pool.fingerprint(), 0), pool)
    torch.testing.assert_close(
        view.validation.columns["contrastive"], space.coder.encode(reserved.pool.load(reserved.pool.ids))
    )


def test_neither_labels_nor_items_outside_the_pool_reach_a_coder(tmp_path):
    pixels, labels = pictures(60)
    everything = Watched(pixels, [f"p{i}" for i in range(60)])
    pool = everything.subset(everything.ids.take(np.arange(40)))
    pool.__class__, pool.read = Watched, []  # a selection of the same array, watched as well
    states = []
    for name, truth in (("a", labels[:40]), ("b", np.roll(labels[:40], 1))):
        learner, oracle = campaign(pool, truth, NEEDY, tmp_path / name)
        run(learner, oracle)
        job = CoderJob("csi", SMALL, pool.fingerprint(), 0)
        states.append(FolderShelf(tmp_path / name / "shared").space(job, pool).coder.state())
    assert all(torch.equal(states[0][key], states[1][key]) for key in states[0])
    assert set(pool.read) == {f"p{i}" for i in range(40)}
    assert everything.read == []


# -- kills, and processes side by side ---------------------------------------------------------------------------------


class Died(BaseException):
    pass


@pytest.mark.parametrize("at", [1, 4, 9])
def test_a_killed_training_is_continued_to_the_same_bits(tmp_path, monkeypatch, at):
    pool = ImagePool(pictures()[0])
    job = CoderJob("csi", SMALL, pool.fingerprint(), 0)
    whole = FolderShelf(tmp_path / "whole").space(job, pool)
    shelf = FolderShelf(tmp_path / "killed")
    monkeypatch.setattr(Saver, "due", lambda _: True)
    steps = []

    def dying(done, total):
        steps.append(done)
        if done == at:
            raise Died

    with pytest.raises(Died):
        shelf.space(job, pool, dying)
    assert not shelf.finished(job)
    continued = FolderShelf(tmp_path / "killed").space(job, pool, lambda done, total: steps.append(done))
    assert steps == list(range(1, 11))  # no step twice, none left out
    assert torch.equal(continued.rows, whole.rows)
    assert files(tmp_path / "killed" / "arrays") == files(tmp_path / "whole" / "arrays")
    assert not list((tmp_path / "killed").rglob("training"))


def files(folder: Path):
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*.safetensors"))}


SCRIPT = """
    import sys, time
    from pathlib import Path
    import numpy as np, torch
    torch.set_num_threads(1)
    from mqnet.data.images import ImagePool
    from mqnet.loop import coders
    from mqnet.models.checkpoints import Saver
    from mqnet.models.contrastive.config import CoderConfig

    folder, slow = Path(sys.argv[1]), float(sys.argv[2])
    pool = ImagePool(np.load(folder / "pool.npy"))
    config = CoderConfig(epochs=2, batch_size=8, precision="float32", rotations=1)
    job = coders.CoderJob("csi", config, pool.fingerprint(), 0)

    def watch(done, total):
        with open(folder / "steps", "a") as file:
            file.write(f"{done}\\n")
        time.sleep(slow)

    print("ready", flush=True)
    sys.stdin.readline()
    Saver.due = lambda _: True
    coders.FolderShelf(folder / "shared").space(job, pool, watch)
    print("done", flush=True)
"""


def start(folder, slow):
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(SCRIPT), str(folder), str(slow)], stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip


def test_two_processes_train_one_coder_and_the_second_takes_over_when_the_first_is_killed(tmp_path):
    pixels = pictures()[0]
    np.save(tmp_path / "pool.npy", pixels)
    first, second = start(tmp_path, 0.3), start(tmp_path, 0.0)
    with first, second:
        assert [process.stdout.readline() for process in (first, second)] == ["ready\n", "ready\n"]
        first.stdin.write("go\n")
        first.stdin.flush()
        while not (tmp_path / "steps").exists() or len((tmp_path / "steps").read_text().split()) < 3:
            assert first.poll() is None
        second.stdin.write("go\n")  # waits for the first
        second.stdin.flush()
        progress = in_training(tmp_path / "shared")
        assert [(p.kind, p.seed, p.total) for p in progress] == [("csi", 0, 10)]
        first.kill()
        first.wait()
        assert second.stdout.readline() == "done\n"
    steps = [int(line) for line in (tmp_path / "steps").read_text().split()]
    # the last step may have been told and not saved: it is the only one that is done again
    assert sorted(set(steps)) == list(range(1, 11))
    assert len(steps) <= 11
    pool = ImagePool(pixels)
    whole = represent(MemoryShelf().space(job := CoderJob("csi", SMALL, pool.fingerprint(), 0), pool).coder, pool)
    assert torch.equal(FolderShelf(tmp_path / "shared").space(job, pool).rows, whole)
    assert in_training(tmp_path / "shared") == []


# -- trouble -----------------------------------------------------------------------------------------------------------


def test_a_damaged_coder_is_named_and_a_damaged_checkpoint_costs_time_only(tmp_path, monkeypatch):
    pool = ImagePool(pictures()[0])
    job = CoderJob("simclr", SMALL, pool.fingerprint(), 0)
    monkeypatch.setattr(Saver, "due", lambda _: True)

    def dying(done, total):
        raise Died

    with pytest.raises(Died):
        FolderShelf(tmp_path / "a").space(job, pool, dying)
    (checkpoint,) = (tmp_path / "a").rglob("training/*")
    checkpoint.write_bytes(checkpoint.read_bytes()[:-1])
    found = FolderShelf(tmp_path / "a").space(job, pool)
    assert torch.equal(found.rows, FolderShelf(tmp_path / "b").space(job, pool).rows)
    (tmp_path / "a" / job.digest / "coder.json").write_text("{}")
    with pytest.raises(StoreError, match=r"coder\.json' cannot be read"):
        FolderShelf(tmp_path / "a").space(job, pool)


def test_wrong_coder_options_are_refused_by_name():
    pixels, _ = pictures()
    for wrong, said in (({"epoch": 3}, "no option 'epoch'. Did you mean 'epochs'"), ({"lr": -1}, "lr is -1")):
        with pytest.raises(ConfigError, match=said):
            ActiveLearner(pixels, CLASSES, budget=4, strategy="ccal", model="pixels", coder=wrong)


def test_vectors_are_their_own_space():
    vectors = np.random.default_rng(0).normal(size=(30, 4)).astype(np.float32)
    with ActiveLearner(vectors, CLASSES, budget=4, rounds=1, strategy=NEEDY) as learner:
        assert learner.config.coder == {}
        query = learner.ask()
        learner.tell(dict.fromkeys(query.items, "dark"))
        learner.ask()
        _, view = learner.view(1)
    assert torch.equal(view.columns["contrastive"], torch.from_numpy(vectors)[view.ids.rows])
