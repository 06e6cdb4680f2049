"""Threads: small tensors are worked on faster by one."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

import torch


@contextmanager
def one_thread() -> Generator[None]:
    """Torch uses one thread inside: training a small net with two took 4 to 10 times as long on a busy machine.

    Results then do not depend on the number of threads either: a product rounds differently when it is split.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
