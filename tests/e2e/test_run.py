"""`mqnet run`: what it writes, how rounds count, what a second call repeats."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from looking import campaign_of, everything_of, files_of, rows_of

from mqnet.experiment.cells import grid, open_scenario
from mqnet.experiment.config import load_config
from mqnet.store.campaign import CampaignStore, RoundRecord
from mqnet.types import CampaignConfig
from processes import PLUGIN, write_grid

COLUMNS = [
    "scenario", "strategy", "ood_share", "seed", "round", "accuracy", "spent", "n_known", "n_ood", "query_known_share",
    "purity_auroc", "seconds_fit", "seconds_encode", "seconds_select", "seconds_learn",
]  # fmt: skip


@pytest.fixture(scope="module")
def finished(mqnet, tmp_path_factory):
    """A finished grid of 2 strategies, 2 shares and 2 seeds."""
    folder = tmp_path_factory.mktemp("finished")
    write_grid(folder, scenario={"ood_share": [0.2, 0.4]}, grid={"seeds": [0, 1]})
    ended = mqnet("run", "grid.toml", "--out", "out", "--jobs", "1", cwd=folder)
    assert (ended.code, ended.err) == (0, "")
    return folder


def test_results_have_the_promised_columns_and_one_row_per_round(finished: Path) -> None:
    with (finished / "out" / "results.csv").open(newline="") as file:
        reader = csv.DictReader(file)
        rows = list(reader)
    assert reader.fieldnames is not None
    assert [name for name in reader.fieldnames if name in COLUMNS] == COLUMNS
    assert reader.fieldnames[-1] == "cell"
    found = [(r["strategy"], r["ood_share"], r["seed"], r["round"]) for r in rows]
    expected = {
        (strategy, share, seed, round_)
        for strategy in ("random", "sum")
        for share in ("0.2", "0.4")
        for seed in "01"
        for round_ in "123"
    }
    assert len(found) == len(expected)
    assert set(found) == expected
    for row in rows:
        assert 0.0 <= float(row["accuracy"]) <= 1.0
        assert (row["purity_auroc"] == "") == (row["strategy"] == "random")
        assert all(float(row[name]) >= 0 for name in COLUMNS if name.startswith("seconds_"))


def test_rounds_count_as_the_method_says(finished: Path) -> None:
    # round r's row: the labels its model was trained after, and the query that model ranked
    scenario_of = load_config(finished / "grid.toml").scenario
    for row in rows_of(finished / "out"):
        lines = campaign_of(finished / "out" / "cells" / row["cell"])["answers"]
        round_ = int(row["round"])
        before = [line for line in lines if line[0] < round_]
        query = [line for line in lines if line[0] == round_]
        assert int(row["n_known"]) == sum(kind == "known" for *_, kind, _, _ in before)
        assert int(row["n_ood"]) == sum(kind == "ood" for *_, kind, _, _ in before)
        assert float(row["spent"]) == int(row["n_known"]) * 1.0 + int(row["n_ood"]) * 2.5
        share = np.mean([kind == "known" for *_, kind, _, _ in query])
        assert float(row["query_known_share"]) == pytest.approx(share)
        scenario = open_scenario(scenario_of, float(row["ood_share"]), int(row["seed"]))
        names = dict(zip(scenario.pool.ids, scenario.labels.tolist(), strict=True))
        for _, _, item, kind, name, _ in lines:
            assert (kind, name) == (("known", scenario.classes[names[item]]) if names[item] >= 0 else ("ood", None))
    # ten models are ten queries and one random sample: 3 rounds here, and round 0
    for cell in (finished / "out" / "cells").iterdir():
        assert {line[0] for line in campaign_of(cell)["answers"]} == {0, 1, 2, 3}
        for round_ in range(4):
            costs = [line[5] for line in campaign_of(cell)["answers"] if line[0] == round_]
            assert 10 - 2.5 < sum(costs) <= 10


def test_every_strategy_starts_from_the_same_labels_and_model(finished: Path) -> None:
    first = {}
    for row in rows_of(finished / "out"):
        if row["round"] == "1":
            start = (row["accuracy"], row["spent"], row["n_known"], row["n_ood"])
            assert first.setdefault((row["ood_share"], row["seed"]), start) == start


def test_two_jobs_give_the_rows_of_one(mqnet, finished: Path) -> None:
    ended = mqnet("run", "grid.toml", "--out", "two", "--jobs", "2", cwd=finished)
    assert (ended.code, ended.err) == (0, "")
    assert everything_of(finished / "two") == everything_of(finished / "out")


def test_continuing_a_finished_run_changes_nothing(mqnet, finished: Path) -> None:
    before = files_of(finished / "out")
    ended = mqnet("run", "grid.toml", "--out", "out", cwd=finished)
    assert ended.code == 0
    assert files_of(finished / "out") == before


def test_a_grown_grid_reuses_what_is_finished(mqnet, finished: Path, tmp_path: Path) -> None:
    shutil.copytree(finished / "out", tmp_path / "out")
    old = {path: path.stat().st_mtime_ns for path in (tmp_path / "out" / "cells").rglob("*") if path.is_file()}
    write_grid(
        tmp_path,
        scenario={"ood_share": [0.2, 0.4]},
        grid={"strategies": ["random", "sum", "confidence"], "seeds": [0, 1, 2]},
    )
    ended = mqnet("run", "grid.toml", "--out", "out", "--jobs", "1", cwd=tmp_path)
    assert (ended.code, ended.err) == (0, "")
    assert {path: path.stat().st_mtime_ns for path in old} == old
    rows, before = rows_of(tmp_path / "out"), rows_of(finished / "out")
    assert len(rows) == 2 * 3 * 3 * 3
    assert [row for row in rows if row in before] == before
    # the smaller grid in the same folder reports its own cells only
    ended = mqnet("run", finished / "grid.toml", "--out", "out", cwd=tmp_path)
    assert rows_of(tmp_path / "out") == before


def test_a_cells_name_depends_on_content_not_on_places(mqnet, tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    labels = random.integers(3, size=90)
    vectors = (np.eye(3)[labels] * 4 + random.normal(size=(90, 3))).astype(np.float16)
    digests = []
    for place in ("here", "there/deeper"):
        folder = tmp_path / place
        folder.mkdir(parents=True)
        for name, part in (("train", slice(0, 70)), ("test", slice(70, 90))):
            np.save(folder / f"{name}.npy", vectors[part])
            np.save(folder / f"{name}_labels.npy", labels[part])
        files = {name: f"{name}.npy" for name in ("train", "train_labels", "test", "test_labels")}
        write_grid(
            folder,
            scenario={"dataset": "embeddings", **files, "known_classes": 2, "ood_share": [0.3], "pool_size": 40},
            grid={"strategies": ["random"]},
        )
        # paths are relative to the configuration, not to where the command runs
        ended = mqnet("run", folder / "grid.toml", "--out", folder / "out", cwd=tmp_path)
        assert (ended.code, ended.err) == (0, "")
        digests.append(sorted(path.name for path in (folder / "out" / "cells").iterdir()))
    assert digests[0] == digests[1]
    write_grid(tmp_path / "here", scenario={"dataset": "embeddings", **files, "known_classes": 2, "ood_share": [0.3]})
    assert everything_of(tmp_path / "here" / "out") == everything_of(tmp_path / "there/deeper" / "out")


def test_status_says_how_far(mqnet, finished: Path, tmp_path: Path) -> None:
    ended = mqnet("status", "out", "--json", cwd=finished)
    found = json.loads(ended.out)
    assert (found["cells"], found["finished"], found["failed"], found["running"]) == (8, 8, 0, [])
    cell = min((finished / "out" / "cells").iterdir())
    ended = mqnet("status", cell, "--json", cwd=finished)
    lines = campaign_of(cell)["answers"]
    n_ood = sum(line[3] == "ood" for line in lines)
    assert json.loads(ended.out) == {
        "round": 3, "spent": sum(line[5] for line in lines), "known": len(lines) - n_ood, "ood": n_ood, "skipped": 0,
        "open": 0,
    }  # fmt: skip
    assert "finished: 8" in mqnet("status", "out", cwd=finished).out
    ended = mqnet("status", tmp_path, cwd=finished)
    assert ended.code == 2
    assert "holds neither a run nor a campaign" in ended.err


def test_json_is_json_line_by_line(mqnet, finished: Path) -> None:
    shutil.rmtree(finished / "out" / "cells" / rows_of(finished / "out")[0]["cell"])
    ended = mqnet("run", "grid.toml", "--out", "out", "--jobs", "1", "--json", cwd=finished)
    *progress, summary = [json.loads(line) for line in ended.out.splitlines()]
    assert [(p["done"], p["total"]) for p in progress] == [(8, 8)]
    assert set(summary) == {"verdict", "tables", "report", "results"}
    assert len(summary["tables"]) == 2


def test_the_table_and_the_verdict_are_printed_and_the_report_is_named(mqnet, finished: Path) -> None:
    ended = mqnet("run", "grid.toml", "--out", "out", cwd=finished)
    assert "oracle gap" not in ended.out
    assert "For the same " in ended.out
    assert ended.out.rstrip().endswith("report:  out/report.html")
    before = (finished / "out" / "report.html").read_bytes()
    (finished / "out" / "report.html").unlink()
    assert mqnet("report", "out", cwd=finished).out == "out/report.html\n"
    assert (finished / "out" / "report.html").read_bytes() == before


def test_list_names_everything_registered(mqnet, tmp_path: Path) -> None:
    from mqnet.registry import DATASET, ENCODER, INFORMATIVENESS, MODEL, PURITY, STRATEGY

    listed = json.loads(mqnet("list", "--json", cwd=tmp_path).out)
    expected = {
        "strategies": STRATEGY, "purity scores": PURITY, "informativeness scores": INFORMATIVENESS, "models": MODEL,
        "data sets": DATASET, "encoders": ENCODER,
    }  # fmt: skip
    assert {kind: [entry["name"] for entry in entries] for kind, entries in listed.items()} == {
        # other tests of this process may have brought plug-ins of their own
        kind: [name for name in registry.names() if registry.get(name).target.__module__.startswith("mqnet.")]
        for kind, registry in expected.items()
    }
    assert all(entry["summary"] for entries in listed.values() for entry in entries)
    table = mqnet("list", "--plugin", PLUGIN, cwd=tmp_path).out
    for name in [*(entry["name"] for entries in listed.values() for entry in entries), "leaning"]:
        assert f"\n{name} " in table


def test_a_failing_campaign_is_noted_and_the_others_go_on(mqnet, tmp_path: Path) -> None:
    plugin = tmp_path / "broken.py"
    plugin.write_text(
        "from mqnet.registry import strategy\nfrom mqnet.strategies.base import Ranking\n"
        "@strategy('broken')\nclass Broken(Ranking):\n    'Fails.'\n"
        "    def score(self, view, key):\n        raise ZeroDivisionError('as told')\n"
    )
    write_grid(tmp_path, grid={"strategies": ["broken", "random"]})
    ended = mqnet("run", "grid.toml", "--out", "out", "--jobs", "1", "--plugin", plugin, cwd=tmp_path)
    assert ended.code == 1
    assert "1 of 2 campaigns failed" in ended.err
    assert "as told" in ended.err
    assert "Traceback" not in ended.err
    assert {row["strategy"] for row in rows_of(tmp_path / "out")} == {"random"}
    (note,) = (tmp_path / "out" / "cells").glob("*/error.txt")
    assert "ZeroDivisionError: as told" in note.read_text()
    status = json.loads(mqnet("status", "out", "--json", cwd=tmp_path).out)
    assert {name: status[name] for name in ("cells", "finished", "failed")} == {"cells": 2, "finished": 1, "failed": 1}


def test_mismatch_begins_with_labels_of_known_classes_and_goes_on_after_a_crash(mqnet, tmp_path: Path) -> None:
    mismatch = {"kind": "mismatch", "ood_share": None, "initial_share": 0.1}
    write_grid(tmp_path, scenario=mismatch, grid={"strategies": ["random", "mqnet"]})
    ended = mqnet("run", "grid.toml", "--out", "out", "--jobs", "1", cwd=tmp_path)
    assert (ended.code, ended.err) == (0, "")
    rows = rows_of(tmp_path / "out")
    assert {(row["ood_share"], row["cost_ood"]) for row in rows} == {("0.6", "2.5")}
    assert {(row["spent"], row["n_ood"], row["n_known"]) for row in rows if row["round"] == "1"} == {("0.0", "0", "6")}
    for cell in (tmp_path / "out" / "cells").iterdir():
        first = [line for line in campaign_of(cell)["answers"] if line[0] == 0]
        assert len(first) == 6
        assert {(kind, cost) for *_, kind, _, cost in first} == {("known", 0.0)}
    # a crash between the two transactions of the import leaves an open round 0 without answers: it is completed
    scenario = open_scenario(load_config(tmp_path / "grid.toml").scenario, 0.6, 0)
    assert scenario.initial is not None
    whole = everything_of(tmp_path / "out")
    write_grid(tmp_path, scenario=mismatch, grid={"strategies": ["random", "mqnet"]})
    for cell in grid(load_config(tmp_path / "grid.toml")):
        store = CampaignStore.create(
            tmp_path / "cut" / "cells" / cell.digest, *_stored(tmp_path / "out" / "cells" / cell.digest)
        )
        store.open_round(RoundRecord(0, 0.0), [(item, 0.0) for item in scenario.initial])
        store.close()
    ended = mqnet("run", "grid.toml", "--out", "cut", "--jobs", "1", cwd=tmp_path)
    assert (ended.code, ended.err) == (0, "")
    assert everything_of(tmp_path / "cut") == whole


def _stored(cell: Path) -> tuple[CampaignConfig, dict[str, object]]:
    store = CampaignStore.open(cell)
    try:
        return store.config(), dict(store.pool())
    finally:
        store.close()


def test_costs_and_scenarios_are_one_grid(mqnet, tmp_path: Path) -> None:
    (tmp_path / "grid.toml").write_text("""
        [[scenarios]]
        name = "four"
        known_classes = 4
        ood_share = [0.2, 0.4]
        pool_size = 150
        [[scenarios]]
        name = "three"
        known_classes = 3
        ood_share = 0.4
        pool_size = 100
        [campaign]
        rounds = 2
        budget = 10
        cost_ood = [1, 2]
        [model]
        n_steps = 20
        [grid]
        strategies = ["random", "sum"]
        seeds = [0]
    """)
    ended = mqnet("run", "grid.toml", "--out", "out", "--jobs", "1", cwd=tmp_path)
    assert (ended.code, ended.err) == (0, "")
    rows = rows_of(tmp_path / "out")
    settings = {(row["scenario"], row["cost_ood"], row["ood_share"]) for row in rows}
    assert settings == {
        (s, c, t) for s, t in (("four", "0.2"), ("four", "0.4"), ("three", "0.4")) for c in ("1.0", "2.0")
    }
    assert all(float(row["spent"]) == int(row["n_known"]) + float(row["cost_ood"]) * int(row["n_ood"]) for row in rows)
    # strategies of one setting start alike; costs differ in what the first budget buys
    starts = {
        (r["scenario"], r["cost_ood"], r["ood_share"], r["n_known"], r["accuracy"]) for r in rows if r["round"] == "1"
    }
    assert len(starts) == len(settings)
    table = mqnet("table", "out", "--kind", "ood-cost", "--format", "csv", cwd=tmp_path)
    assert table.out.splitlines()[0] == "scenario,OOD,strategy,c_OOD 1,c_OOD 2"
    assert len(table.out.splitlines()) == 1 + 3 * 2


FATAL = """
import os, signal
from mqnet.registry import strategy
from mqnet.strategies.base import Ranking

@strategy("starved")
class Starved(Ranking):
    "Asks for more memory than there is."
    def score(self, view, key):
        raise MemoryError("17 TB")

@strategy("shot")
class Shot(Ranking):
    "Ends as the system ends what takes too much memory."
    def score(self, view, key):
        os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_cell_out_of_memory_or_killed_is_noted_and_the_others_go_on(mqnet, tmp_path: Path) -> None:
    (tmp_path / "fatal.py").write_text(FATAL)
    write_grid(tmp_path, grid={"strategies": ["starved", "shot", "random", "confidence"]})
    command = ("run", "grid.toml", "--out", "out", "--jobs", "2", "--plugin", tmp_path / "fatal.py")
    ended = mqnet(*command, cwd=tmp_path)
    assert ended.code == 1
    assert "2 of 4 campaigns failed" in ended.err
    assert "Traceback" not in ended.err
    assert {row["strategy"] for row in rows_of(tmp_path / "out")} == {"random", "confidence"}
    notes = {note.read_text().split(" ")[0]: note.read_text() for note in tmp_path.rglob("error.txt")}
    assert set(notes) == {"starved", "shot"}
    assert "Traceback" in notes["starved"]
    assert "MemoryError: 17 TB" in notes["starved"]
    assert "its process died twice; was it killed, or out of memory?" in notes["shot"]
    for name, note in notes.items():  # enough to repeat it by hand
        assert f'strategy: {{"name": "{name}"}}' in note
        assert "seed: 0" in note
        config = json.loads(note[note.index("\n{") :])
        assert config["scenario"]["known_classes"] == 4
        assert config["campaign"]["cost_ood"] == 2.5
    # a failed cell is tried again, a finished one is not, though the plug-in file has changed
    fixed = FATAL.replace('raise MemoryError("17 TB")', "return view.column('logits')[:, 0]")
    (tmp_path / "fatal.py").write_text(fixed)
    finished = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("rounds.json")}
    ended = mqnet(*command, cwd=tmp_path)
    assert "1 of 4 campaigns failed" in ended.err
    assert {row["strategy"] for row in rows_of(tmp_path / "out")} == {"starved", "random", "confidence"}
    assert {path: path.stat().st_mtime_ns for path in finished} == finished


def test_json_lines_tell_how_far_it_is(mqnet, tmp_path: Path) -> None:
    write_grid(tmp_path, grid={"seeds": [0, 1]})
    ended = mqnet("run", "grid.toml", "--out", "out", "--jobs", "1", "--json", cwd=tmp_path)
    lines = [json.loads(line) for line in ended.out.splitlines()]
    assert [line["done"] for line in lines[:-1]] == [1, 2, 3, 4]
    assert {line["total"] for line in lines[:-1]} == {4}
    assert (lines[3]["failed"], lines[3]["error"], lines[3]["seconds_left"]) == (0, None, 0.0)
    assert lines[3]["best"]["strategy"] in ("random", "sum")
    assert lines[3]["best"]["blocks"] == 2
    status = json.loads(mqnet("status", "out", "--json", cwd=tmp_path).out)
    assert status == {
        "cells": 4, "finished": 4, "failed": 0, "running": [], "seconds_left": 0.0, "best": lines[3]["best"],
    }  # fmt: skip
    assert "best so far: " in mqnet("status", "out", cwd=tmp_path).out


def test_data_is_opened_once_for_all_cells_of_a_process(mqnet, tmp_path: Path) -> None:
    (tmp_path / "counted.py").write_text("""
import os, pathlib
from mqnet.data.digits import digits
from mqnet.registry import dataset

@dataset("counted")
def counted():
    "Digits that say when they are opened."
    with pathlib.Path(os.environ["COUNT"]).open("a") as file:
        file.write(f"{os.getpid()}\\n")
    return digits()
""")
    write_grid(
        tmp_path,
        scenario={"dataset": "counted", "ood_share": [0.2, 0.4]},
        grid={"seeds": [0, 1]},
        campaign={"rounds": 1},
    )
    script = tmp_path / "script.py"
    script.write_text(
        "import os, pathlib\nos.environ['COUNT'] = str(pathlib.Path('count').resolve())\n"
        "from mqnet.experiment.config import load_config\nfrom mqnet.experiment.run import run_experiment\n"
        "if __name__ == '__main__':\n"
        "    config = load_config(pathlib.Path('grid.toml'))\n"
        "    config = config.model_copy(update={'plugins': (pathlib.Path('counted.py').resolve(),)})\n"
        "    assert sum(done.error is None for done in run_experiment(config, pathlib.Path('out'), jobs=2)) == 8\n"
    )
    ended = mqnet(cwd=tmp_path, script=str(script))
    assert (ended.code, ended.err) == (0, "")
    opened = (tmp_path / "count").read_text().split()
    assert len(opened) == len(set(opened)) <= 3  # this process, and two that work
