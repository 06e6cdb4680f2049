"""How long an answer takes when many people label at once: `python benchmarks/labelling.py`.

A real server on loopback and SQLite, its loop training beside it, and annotators in a process of their own who answer
as fast as they can, one request after the other; with `--pause` they look at each item. The dashboard is asked all the
while. Afterwards the database is held against what was confirmed: nothing lost, nothing doubled. The server's processor
time for each answer (all it does meanwhile, without the training process) tells more on a busy machine than the clock.
"""

from __future__ import annotations

import argparse
import json
import os
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from contextlib import closing
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from people import Client, Robot, digits_campaign, free_port, let_in, make_project, start_all


def percentile(values: list[float], share: float) -> float:
    """The nearest-rank percentile, in milliseconds."""
    ordered = sorted(values) or [float("nan")]
    return 1000 * ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def processor_seconds(pid: int) -> float:
    """The processor time a process has had, all its threads, not its children; nan where there is no /proc."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return float("nan")
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def annotate(port: int, tokens: list[str], truth: dict[str, dict[str, str]], pause: float) -> dict[str, object]:
    """Everybody answers until the campaign is over."""
    # who has nothing to answer asks again ten times as often as a page would: what is measured are answers, not this
    robots = [
        Robot(Client(port, token), truth, seed, pause=pause, at_once=5, wait=0.2) for seed, token in enumerate(tokens)
    ]
    began = time.monotonic()
    for thread in start_all(robots):
        thread.join()
    errors = [repr(robot.error) for robot in robots if robot.error]
    return {
        "wall": time.monotonic() - began,
        "seconds": [s for robot in robots for s in robot.seconds],
        "asked": sum(robot.n_asked for robot in robots),
        "accepted": [item for robot in robots for item in robot.accepted],
        "errors": errors,
    }


def watch(client: Client, over: threading.Event, every: float, seconds: list[float]) -> None:
    """Ask for the dashboard again and again."""
    while not over.wait(every):
        began = time.perf_counter()
        status, found = client.patiently("GET", "/api/dashboard")
        assert status == 200, found
        seconds.append(time.perf_counter() - began)


def measure(n_people: int, budget: float, rounds: int, pause: float, every: float) -> bool:
    """Run a campaign, print the figures; whether nothing was lost or doubled."""
    with tempfile.TemporaryDirectory() as scratch:
        given = digits_campaign(Path(scratch), n_items=1797, budget=budget, rounds=rounds, cost_ood=1.0)
        folder, port = Path(scratch) / "campaign", free_port()
        make_project(given, folder)
        tokens = let_in(folder, *(f"person {i}" for i in range(n_people)))
        (olga,) = let_in(folder, "olga", role="owner")
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        command = [str(Path(sys.executable).with_name("mqnet")), "label", str(folder), "--port", str(port)]
        server = subprocess.Popen([*command, "--no-browser"], env=environment, stdout=subprocess.DEVNULL)
        over, looked = threading.Event(), list[float]()
        try:
            _wait_for(port)
            watcher = threading.Thread(target=watch, args=(Client(port, olga), over, every, looked), daemon=True)
            if every > 0:
                watcher.start()
            # in a process of their own: their work must not be taken for the server's
            job = json.dumps([port, tokens, given.answers(), pause])
            used = processor_seconds(server.pid)
            answered = subprocess.run([sys.executable, __file__, "--annotate"], input=job, text=True, check=True,
                                      stdout=subprocess.PIPE, env=environment)  # fmt: skip
            used = processor_seconds(server.pid) - used
            over.set()
            if every > 0:
                watcher.join()
        finally:
            server.terminate()
            server.wait()
        found = json.loads(answered.stdout)
        return _report(folder, n_people, found, looked, used)


def _report(folder: Path, n_people: int, found: dict[str, list], looked: list[float], used: float) -> bool:
    with closing(sqlite3.connect(folder / "campaign.db")) as database:
        kept = Counter(item for (item,) in database.execute("SELECT item FROM votes WHERE state = 'live'"))
        bought = Counter(item for (item,) in database.execute("SELECT item FROM answers"))
        n_open = database.execute("SELECT count(*) FROM rounds WHERE NOT closed").fetchone()[0]
    confirmed = Counter(found["accepted"])
    lost, doubled = confirmed - kept, [item for item, n in bought.items() if n > 1]
    seconds, wall = found["seconds"], found["wall"]
    print(f"{n_people} people, {len(seconds)} answers in {wall:.1f} s, {len(seconds) / wall:.0f} a second")
    print(
        f"the server's processor time: {1000 * used / len(seconds):.2f} ms an answer with all it did beside, "
        f"{1000 * used / (len(seconds) + found['asked'] + len(looked)):.2f} ms a request ({found['asked']} for items)"
    )
    print(f"the machine's load: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    print(f"an answer: {_times(seconds)}\nthe dashboard meanwhile, {len(looked)} times: {_times(looked)}")
    print(
        f"lost {sum(lost.values())}, bought twice {len(doubled)}, rounds left open {n_open}, errors {found['errors']}"
    )
    return not (lost or doubled or n_open or found["errors"])


def _times(seconds: list[float]) -> str:
    shares = (("p50", 0.5), ("p95", 0.95), ("p99", 0.99))
    return ", ".join(f"{name} {percentile(seconds, share):.1f} ms" for name, share in shares)


def _wait_for(port: int) -> None:
    for _ in range(600):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=5):
                return
        except urllib.error.URLError:
            time.sleep(0.1)
    raise SystemExit("the server did not start")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--people", type=int, default=20)
    parser.add_argument("--round-budget", type=float, default=200)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--pause", type=float, default=0.0, help="seconds a person looks at an item")
    parser.add_argument(
        "--dashboard", type=float, default=5.0, help="seconds between two looks at it (the page takes 5); 0 for none"
    )
    parser.add_argument("--annotate", action="store_true", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.annotate:
        json.dump(annotate(*json.load(sys.stdin)), sys.stdout)
    elif not measure(chosen.people, chosen.round_budget, chosen.rounds, chosen.pause, chosen.dashboard):
        raise SystemExit(1)
