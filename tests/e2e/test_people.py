"""People at a campaign over real HTTP: whatever dies meanwhile, the ledger is the simulated run's."""

from __future__ import annotations

import random
import time
from pathlib import Path

from looking import campaign_of

from mqnet.loop.advance import advance
from mqnet.loop.learner import ActiveLearner
from mqnet.oracles.simulated import SimulatedOracle
from people import Client, Given, Robot, digits_campaign, free_port, let_in, make_project, start_all
from processes import Running, Zygote

N_KILLS = 8


def simulated(given: Given, folder: Path) -> dict[str, list[tuple[object, ...]]]:
    with ActiveLearner(folder=folder, **given.learner) as learner:
        while advance(learner, SimulatedOracle(given.truth)).state != "done":
            pass
    return campaign_of(folder)


class Processes:
    """A server and a worker that are killed and started again."""

    def __init__(self, mqnet: Zygote, folder: Path, port: int) -> None:
        self._commands = {
            "server": ("label", folder, "--port", port, "--no-browser", "--no-worker"),
            "worker": ("work", folder),
        }
        self._mqnet, self._cwd = mqnet, folder.parent
        self.running: dict[str, Running] = {}

    def start(self, name: str) -> None:
        self.running[name] = self._mqnet.start(*self._commands[name], cwd=self._cwd)

    def kill(self, name: str) -> None:
        running = self.running.pop(name)
        running.kill()
        ended = running.wait()
        assert ended.code in (-9, 0), ended  # the worker may have come to the campaign's end


def test_people_and_kills_end_like_the_simulated_run(mqnet: Zygote, tmp_path: Path) -> None:
    given = digits_campaign(tmp_path)
    expected = simulated(given, tmp_path / "simulated")
    folder, port, chance = tmp_path / "people", free_port(), random.Random(3)
    make_project(given, folder, early_answers=False, lease_seconds=2.0)
    tokens = let_in(folder, "ann", "bob", "cat", "dan")
    robots = [
        Robot(Client(port, token), given.answers(), seed, pause=0.2, undoes=0.1) for seed, token in enumerate(tokens)
    ]
    processes = Processes(mqnet, folder, port)
    for name in ("server", "worker"):
        processes.start(name)
    threads = start_all(robots)
    n_kills = 0
    while any(thread.is_alive() for thread in threads):
        time.sleep(chance.uniform(0.1, 0.9))
        if n_kills < N_KILLS:
            name = ("server", "worker")[n_kills % 2]
            processes.kill(name)
            time.sleep(chance.uniform(0.0, 0.2))
            processes.start(name)
            n_kills += 1
    for name in list(processes.running):
        processes.kill(name)
    assert not [robot.error for robot in robots if robot.error]
    assert n_kills == N_KILLS, "the campaign was over before everything had been killed"
    found = campaign_of(folder)
    as_set = [{(r, item, kind, name, cost) for r, _, item, kind, name, cost in f["answers"]} for f in (found, expected)]
    assert as_set[0] == as_set[1]
    assert found == expected  # and more: places, rankings, models and what was learned, bit for bit
    assert len(found["answers"]) > 40
