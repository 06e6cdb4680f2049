"""What `mqnet bench` measures, its limits, and what it says of a baseline."""

import json
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from mqnet.cli.main import app
from mqnet.errors import ConfigError
from mqnet.experiment.baseline import Before, compare, read_baseline
from mqnet.experiment.bench import Measured, default_jobs, made_up_round, measure
from mqnet.experiment.limits import Job, Rates, work
from mqnet.registry import STRATEGY

JOB = Job("coreset", 400, 3, dim=16, n_picks=20, n_labelled=30)
RATES = Rates(copy_gb_per_s=10.0, product_gflop_per_s=100.0)


def test_limits_by_hand():
    small = Job("coreset", 1000, 4, dim=8, n_picks=10, n_labelled=6)
    assert work(small) == (32_000, 2 * 1000 * 8 * (10 + 3))
    assert work(replace(small, strategy="margin")) == (16_000, 0)
    assert work(replace(small, strategy="somebody's own")) == (32_000, 0)
    assert Rates(1.0, 4.0).seconds(2e9, 4e9) == 2.0  # two seconds to move, one to compute
    assert Rates(1.0, 1.0).seconds(2e9, 4e9) == 4.0


@pytest.mark.parametrize("name", [n for n in STRATEGY.names() if not STRATEGY.get(n).reference])
def test_every_strategy_has_a_limit_that_grows_with_the_pool(name: str):
    job = replace(JOB, strategy=name)
    assert STRATEGY.make(name).needs <= set(made_up_round(job).columns)
    twice = RATES.seconds(*work(replace(job, n_items=800))) / RATES.seconds(*work(job))
    assert twice == pytest.approx(2.0)


@pytest.mark.parametrize("clock", ["wall", "processor"])
def test_a_measurement(clock):
    found = measure(JOB, clock)
    assert found.job == JOB
    assert found.seconds > 0
    assert found.peak_mb >= 0
    assert found.limit_seconds == pytest.approx(found.rates.seconds(*work(JOB)))
    assert {"strategy", "n_items", "seconds", "peak_mb", "limit_seconds"} <= set(found.record())


def test_reference_lines_are_not_measured():
    assert "oracle-purity" not in {job.strategy for job in default_jobs([100], [4], [], 10)}
    with pytest.raises(ConfigError, match="sees the truth"):
        default_jobs([100], [4], ["oracle-purity"], 10)


@pytest.mark.parametrize(
    ("seconds", "peak_mb", "words"),
    [
        (1.0, 100.0, ""),
        (1.4, 100.0, ""),
        (2.0, 100.0, "2.000 s where 1.000 s were expected"),
        (1.0, 190.0, ""),  # within one and a half times and what allocators do
        (1.0, 210.0, "210 MB at its peak where it took 100 MB"),
    ],
)
def test_what_counts_as_a_regression(seconds: float, peak_mb: float, words: str):
    now = Measured(JOB, seconds, peak_mb, RATES)
    (change,) = compare([now], {JOB: Before(1.0, 100.0, now.limit_seconds)})
    assert change.slower == pytest.approx(seconds)
    assert change.regressed(1.5) == words


def test_a_slower_machine_is_no_regression_and_a_blink_is_none():
    now = Measured(JOB, 3.0, 0.0, RATES)
    (change,) = compare([now], {JOB: Before(1.0, 0.0, now.limit_seconds / 3)})
    assert change.slower == pytest.approx(1.0)
    (blink,) = compare([replace(now, seconds=0.012)], {JOB: Before(0.001, 0.0, now.limit_seconds)})
    assert blink.slower == pytest.approx(12.0)
    assert blink.regressed(1.5) == ""
    assert compare([now], {replace(JOB, n_picks=7): Before(1.0, 0.0, 1.0)}) == []


def test_the_command_says_what_became_slower(tmp_path):
    kept = tmp_path / "kept.json"
    run = ["bench", "--items", "3000", "--picks", "100", "--strategy", "coreset", "--clock", "processor"]
    assert CliRunner().invoke(app, [*run, "--out", str(kept)]).exit_code == 0
    (job,) = read_baseline(kept)
    assert (job.strategy, job.n_items, job.n_picks) == ("coreset", 3000, 100)
    same = CliRunner().invoke(app, [*run, "--baseline", str(kept), "--tolerance", "50"])
    assert same.exit_code == 0
    assert "1 of them are in the baseline" in same.output
    doctored = json.loads(kept.read_text())
    doctored["measured"][0]["seconds"] /= 1000
    kept.write_text(json.dumps(doctored))
    worse = CliRunner().invoke(app, [*run, "--baseline", str(kept), "--repeat", "2"])
    assert worse.exit_code == 1
    assert "REGRESSION  coreset at 3,000" in worse.output


def test_a_file_that_is_no_baseline_is_named(tmp_path):
    with pytest.raises(ConfigError, match="does not exist"):
        read_baseline(tmp_path / "none.json")
    for text in ("{", "[]", '{"measured": [{"strategy": "coreset"}]}'):
        (tmp_path / "broken.json").write_text(text)
        with pytest.raises(ConfigError, match=r"broken\.json' does not hold"):
            read_baseline(tmp_path / "broken.json")
