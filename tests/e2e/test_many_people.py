"""Many people at once over real HTTP: every confirmed answer is kept, none is bought twice, the dashboard goes on.

How long an answer takes is measured by benchmarks/labelling.py; here only the laws count.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections import Counter
from contextlib import closing
from pathlib import Path

from people import PATIENCE, Client, Robot, digits_campaign, free_port, let_in, make_project, start_all
from processes import Zygote

N_PEOPLE = 12


def test_nothing_is_lost_or_doubled(mqnet: Zygote, tmp_path: Path) -> None:
    given = digits_campaign(tmp_path, n_items=400, budget=60.0, rounds=3, cost_ood=1.0, audit_share=0.2)
    folder, port = tmp_path / "people", free_port()
    make_project(given, folder)
    tokens = let_in(folder, *(f"person {i}" for i in range(N_PEOPLE)))
    (olga,) = let_in(folder, "olga", role="owner")
    truth = given.answers()
    robots = [Robot(Client(port, token), truth, seed, at_once=4) for seed, token in enumerate(tokens)]
    server = mqnet.start("label", folder, "--port", port, "--no-browser", cwd=tmp_path)
    over, looked = threading.Event(), list[int]()

    def look() -> None:
        client = Client(port, olga)
        while not over.wait(0.05):
            looked.append(client.patiently("GET", "/api/dashboard")[0])
        client.close()

    watcher = threading.Thread(target=look, daemon=True)
    watcher.start()
    for thread in start_all(robots):
        thread.join()
    over.set()
    watcher.join()
    client, began = Client(port, olga), time.monotonic()
    while (insight := client.patiently("GET", "/api/dashboard")[1]["insight"] or {}).get("round") != 3:
        assert time.monotonic() - began < PATIENCE, insight
        time.sleep(0.2)
    client.close()
    server.kill()
    server.wait()
    assert not [robot.error for robot in robots if robot.error]
    # what the dashboard tells of the last round: estimates with intervals, the landscape, the hint
    assert 0 < insight["ood_share"]["low"] <= insight["ood_share"]["value"] <= insight["ood_share"]["high"] < 1
    assert insight["accuracy"]["low"] <= insight["accuracy"]["value"] <= insight["accuracy"]["high"]
    assert len(insight["landscape"]["asked"]) == 48  # the audit drew the other twelve
    assert insight["stopping"]["text"]
    assert len(insight["most_wanted"]) == len(insight["least_wanted"]) == 8
    assert set(looked) == {200}
    assert len(looked) > 3
    confirmed = Counter(item for robot in robots for item in robot.accepted)
    with closing(sqlite3.connect(folder / "campaign.db")) as database:
        votes = Counter(item for (item,) in database.execute("SELECT item FROM votes WHERE state = 'live'"))
        bought = list(database.execute("SELECT item, kind, coalesce(name, '') FROM answers"))
        n_logged = database.execute("SELECT count(*) FROM answer_log").fetchone()[0]
        rounds = list(database.execute("SELECT round, closed FROM rounds"))
    assert confirmed == votes  # nothing lost, and nothing there that nobody confirmed
    assert n_logged == len(bought) == len({item for item, *_ in bought}) == 60 * len(rounds)
    assert all(closed for _, closed in rounds)
    assert all(truth[item] == ({"kind": kind, "name": name} if name else {"kind": kind}) for item, kind, name in bought)
