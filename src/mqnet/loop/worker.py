"""The loop of a campaign with people, as a process: it waits for answers, trains, asks again, and says how it is.

It may be killed at any moment: everything it knows is in the folder, and the next one goes on from there.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from mqnet.errors import MqnetError
from mqnet.loop.advance import advance
from mqnet.loop.insight import keep_insight
from mqnet.loop.learner import ActiveLearner
from mqnet.oracles.inbox import InboxOracle
from mqnet.store.campaign import CampaignStore
from mqnet.store.health import Health
from mqnet.store.ledger import n_known, n_ood

BEAT_SECONDS = 2.0
POLL_SECONDS = 0.2


def run(folder: Path, *, poll_seconds: float = POLL_SECONDS) -> None:
    """Work on the campaign of a folder until nothing is left to ask; a second worker on it is refused by name."""
    store = CampaignStore.open(folder)
    health = Health(store)
    try:
        last = health.worker()
        if last is None or not last.alive():
            health.say("starting", "the loop is starting.")
        with ActiveLearner.open(folder) as learner:
            try:
                with _heart(health):
                    _work(learner, health, poll_seconds)
            except MqnetError as error:
                health.say("stopped", f"the loop stopped: {error}")
                raise
            except BaseException as error:
                what = "was stopped" if isinstance(error, KeyboardInterrupt | SystemExit) else f"failed: {error!r}"
                health.say(
                    "stopped", f"the loop {what}. `mqnet work` (or `mqnet label`) on the folder starts it again."
                )
                raise
    finally:
        store.close()


def _work(learner: ActiveLearner, health: Health, poll_seconds: float) -> None:
    oracle = InboxOracle(learner.store)
    while True:
        revision = health.revision()
        query = learner.store.offered()
        if query is None or not query.items:
            health.say("training", _training(learner), None if query is None else query.round)
        status = advance(learner, oracle)
        if status.state == "done":
            health.say("done", "the campaign is over: there is nothing left to ask, or nothing left to spend.")
            keep_insight(learner)
            return
        if status.n_open:
            health.say("asking", "", status.round)
            _find_out(learner)
            while health.revision() == revision:
                time.sleep(poll_seconds)


class _Answered(Exception):
    """The round is answered: the next one comes before everything else."""


def _find_out(learner: ActiveLearner) -> None:
    """Estimates for the dashboard, while people answer and no longer: what is not finished is begun again later."""

    def between() -> None:
        query = learner.store.offered()
        if query is None or not query.items:
            raise _Answered

    try:
        keep_insight(learner, between)
    except _Answered:
        return
    except Exception:  # an estimate that fails must not keep people from labelling: it is said, and the loop goes on
        traceback.print_exc()


def _training(learner: ActiveLearner) -> str:
    lines = learner.ledger
    if not lines:
        return "the first items are being drawn."
    return f"the model learns from {n_known(lines)} labels and {n_ood(lines)} answers 'none of these'."


@contextmanager
def _heart(health: Health) -> Generator[None]:
    """Beats while the work is done: training takes as long as it takes."""
    over = threading.Event()

    def beat() -> None:
        while not over.wait(BEAT_SECONDS):
            try:
                health.beat()
            except MqnetError:  # a full disk: the work itself meets it and says so
                continue

    thread = threading.Thread(target=beat, name="mqnet-heart", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _end_with_parent() -> None:
    """Die when whoever started this process does: an orphan would only hold the campaign's lock."""
    # the descriptor itself: Python's own reader would hold a lock that a worker at its end has to wait for
    while os.read(0, 4096):
        pass
    os._exit(0)


def _stop(_: int, __: FrameType | None) -> None:
    raise SystemExit(143)


def main() -> int:
    """`python -m mqnet.loop.worker FOLDER`: the loop as a child of the server; its input is a pipe from its parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the parent decides what ends
    signal.signal(signal.SIGTERM, _stop)
    if hasattr(os, "nice"):
        os.nice(10)  # people who label do not wait for a training: where cores are few, the server goes first
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        run(Path(sys.argv[1]))
    except MqnetError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except Exception:
        traceback.print_exc()
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
