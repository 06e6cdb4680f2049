"""Tasks over local processes, one thread each (two busy OpenMP threads per process run slower than one)."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from typing import TypeVar

from mqnet.numerics.threads import one_thread

T = TypeVar("T")
R = TypeVar("R")

Outcome = tuple[T, R | BaseException]
"""A task with its result, or with the error that ended it."""


def run_tasks(work: Callable[[T], R], tasks: Sequence[T], *, jobs: int) -> Iterator[Outcome[T, R]]:
    """Run `work` on every task and yield each with its outcome as it ends; a failing task does not stop the others.

    A task whose worker dies (out of memory, say) fails; the others go on in new workers.
    """
    with _one_thread_each():
        if jobs <= 1 or len(tasks) <= 1:
            for task in tasks:
                yield task, _attempt(work, task)
            return
        todo, suspects = deque(tasks), list[T]()
        while todo:
            suspects += yield from _until_a_death(work, todo, jobs)
        # which of them killed its worker is unknown: each runs again, alone, so that no one falls with another
        for task in suspects:
            if (yield from _until_a_death(work, deque([task]), 1)):
                yield task, ChildProcessError("its process died twice; was it killed, or out of memory?")


def _until_a_death(work: Callable[[T], R], todo: deque[T], jobs: int) -> Generator[Outcome[T, R], None, list[T]]:
    """Take tasks from `todo` in one pool; returns those that were running when a worker died, none if all ended."""
    lost: list[T] = []
    with _pool(min(jobs, len(todo))) as pool:
        running: dict[Future[R], T] = {}
        try:
            while running or (todo and not lost):
                while todo and len(running) < jobs and not lost:
                    task = todo.popleft()
                    try:
                        running[pool.submit(work, task)] = task
                    except BrokenProcessPool:
                        lost.append(task)
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    task, error = running.pop(future), future.exception()
                    if isinstance(error, BrokenProcessPool):
                        lost.append(task)
                    else:
                        yield task, error if error is not None else future.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            workers = multiprocessing.active_children()
            for process in workers:
                process.terminate()
            for process in workers:
                process.join()
            raise
    return lost


def _attempt(work: Callable[[T], R], task: T) -> R | BaseException:
    try:
        return work(task)
    except Exception as error:
        return error


def _pool(jobs: int) -> ProcessPoolExecutor:
    # spawned, not forked: a fork of a process with OpenMP threads can hang
    return ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn"), initializer=_start_worker)


def _start_worker() -> None:
    import torch

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the parent alone decides what ends
    torch.set_num_threads(1)
    threading.Thread(target=die_with_parent, daemon=True).start()


def die_with_parent() -> None:
    """End this process when its parent ends, however that comes about; for a thread of its own."""
    # a killed parent leaves no one to collect results: an orphan would only hold its campaign's lock
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


@contextmanager
def _one_thread_each() -> Generator[None]:
    """One thread for torch here, and for every library in the processes started meanwhile."""
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    before = {name: os.environ.get(name) for name in names}
    os.environ.update(dict.fromkeys(names, "1"))
    try:
        with one_thread():
            yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
