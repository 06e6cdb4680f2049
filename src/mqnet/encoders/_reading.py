"""Items in batches as an encoder wants them; images decoded by threads, ahead of it."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np
import torch
from numpy.typing import NDArray

from mqnet.data.decode import read_picture, square
from mqnet.data.sources import Source
from mqnet.encoders.base import Batch, Encoder
from mqnet.errors import ImageError, PoolError

READERS = 4
"""Threads that decode images while the encoder works."""
AHEAD = 2
"""Batches they are ahead of it."""


def batches(made: Encoder, items: Source, rows: Sequence[int], left_out: dict[str, str] | None) -> Iterator[Batch]:
    """The items of these rows in batches; images are decoded by threads, some batches ahead of the encoder.

    An unreadable image is noted in `left_out`; where that is None, it is raised.
    """
    pieces = [rows[start : start + made.batch] for start in range(0, len(rows), made.batch)]
    if items.kind == "text":
        for piece in pieces:
            yield [items.refs[row] for row in piece]
        return

    def read(row: int) -> NDArray[np.uint8] | ImageError:
        try:
            path = items.file_of(items.refs[row])
            return square(read_picture(path, items.refs[row], at_least=made.size).pixels, made.size)
        except ImageError as error:
            return error

    def gather(piece: Sequence[int], pictures: Sequence[NDArray[np.uint8] | ImageError]) -> Batch:
        good: list[NDArray[np.uint8]] = []
        for row, picture in zip(piece, pictures, strict=True):
            if not isinstance(picture, ImageError):
                good.append(picture)
            elif left_out is None:
                raise PoolError(
                    f"{picture} `mqnet doctor` lists all such files; --skip-unreadable leaves them out."
                ) from picture
            else:
                left_out[items.refs[row]] = str(picture)  # an image's ref is its id
        empty = np.zeros((0, 3, made.size, made.size), dtype=np.uint8)
        return torch.from_numpy(np.stack(good) if good else empty)

    with ThreadPoolExecutor(READERS) as readers:
        waiting: deque[tuple[Sequence[int], list[Future[NDArray[np.uint8] | ImageError]]]] = deque()
        try:
            for piece in [*pieces, *[()] * AHEAD]:
                if piece:
                    waiting.append((piece, [readers.submit(read, row) for row in piece]))
                if len(waiting) > (AHEAD if piece else 0):
                    first, futures = waiting.popleft()
                    batch = gather(first, [future.result() for future in futures])
                    if len(batch):
                        yield batch
        finally:
            for _, futures in waiting:
                for future in futures:
                    future.cancel()
