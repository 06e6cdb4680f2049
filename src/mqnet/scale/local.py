"""Tasks over local processes, one thread each (two busy OpenMP threads per process run slower than one)."""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")

Outcome = tuple[T, R | BaseException]
"""A task with its result, or with the error that ended it."""


def run_tasks(work: Callable[[T], R], tasks: Sequence[T], *, jobs: int) -> Iterator[Outcome[T, R]]:
    """Run `work` on every task and yield each with its outcome as it ends; a failing task does not stop the others.

    A worker that dies (out of memory, say) fails the task it had, and the rest goes on in new workers.
    """
    if jobs <= 1 or len(tasks) <= 1:
        with one_thread():
            for task in tasks:
                yield task, _attempt(work, task)
        return
    waiting, retried = list(tasks), set[int]()
    while waiting:
        todo, waiting = waiting, []
        with one_thread(), _pool(min(jobs, len(todo))) as pool:
            running: dict[Future[R], T] = {}
            try:
                while todo or running:
                    while todo and len(running) < jobs:
                        task = todo.pop(0)
                        running[pool.submit(work, task)] = task
                    done, _ = wait(running, return_when=FIRST_COMPLETED)
                    for future in done:
                        task, error = running.pop(future), future.exception()
                        if isinstance(error, BrokenProcessPool) and id(task) not in retried:
                            # which of the running tasks killed its worker is unknown: each gets a second chance
                            retried.add(id(task))
                            waiting.append(task)
                        else:
                            yield task, error if error is not None else future.result()
                        if isinstance(error, BrokenProcessPool):
                            waiting += [*running.values(), *todo]
                            retried |= {id(other) for other in running.values()}
                            running, todo = {}, []
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                for process in multiprocessing.active_children():
                    process.terminate()
                raise


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

    torch.set_num_threads(1)
    threading.Thread(target=_die_with_parent, daemon=True).start()


def _die_with_parent() -> None:
    # a killed parent leaves no one to collect results: an orphan would only hold its campaign's lock
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


@contextmanager
def one_thread() -> Generator[None]:
    """One thread for torch here, and for every library in the processes started meanwhile."""
    import torch

    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    before, n_threads = {name: os.environ.get(name) for name in names}, torch.get_num_threads()
    os.environ.update(dict.fromkeys(names, "1"))
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(n_threads)
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
