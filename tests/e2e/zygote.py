"""A process that has imported mqnet and forks real `mqnet` processes: seconds of importing torch are paid once.

Requests come as JSON lines: {"start": …} forks a child and answers its pid, {"wait": pid} answers its exit code.
"""

from __future__ import annotations

import gc
import json
import os
import resource
import runpy
import signal
import sys
import traceback
from pathlib import Path


def preload() -> None:
    import sklearn.datasets  # noqa: F401
    import torch

    import mqnet
    from mqnet.cli import catalogue, experiments, main  # noqa: F401
    from mqnet.loop import worker  # noqa: F401
    from mqnet.registry import DATASET, INFORMATIVENESS, MODEL, PURITY, STRATEGY
    from mqnet.server import serve  # noqa: F401

    for name in mqnet.__all__:
        getattr(mqnet, name)
    for registry in (PURITY, INFORMATIVENESS, STRATEGY, MODEL, DATASET):
        registry.names()
    torch.set_num_threads(1)


class Ticks:
    """Counts every step towards the disk (SQL statement, commit, fsync, rename) and kills the process at number `at`.

    A kill before a step is a kill after the one before it: with every step possible, all gaps between them are.
    """

    def __init__(self, at: int | None, report: str | None) -> None:
        self.at, self.report, self.n = at, report, 0

    def tick(self, *_: object) -> None:
        self.n += 1
        if self.n == self.at:
            os.kill(os.getpid(), signal.SIGKILL)

    def install(self) -> None:
        import sqlalchemy as sa

        for event in ("before_cursor_execute", "commit"):
            sa.event.listen(sa.Engine, event, self.tick)
        fsync, replace, rename = os.fsync, Path.replace, Path.rename
        os.fsync = lambda fd: (self.tick(), fsync(fd))[1]
        Path.replace = lambda path, target: (self.tick(), replace(path, target))[1]
        Path.rename = lambda path, target: (self.tick(), rename(path, target))[1]


def become(request: dict) -> int:
    # a shell's background jobs inherit that Ctrl-C is ignored: these processes are as if started in the foreground
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.chdir(request["cwd"])
    for stream, path in ((0, "/dev/null"), (1, request["out"]), (2, request["err"])):
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o644)
        os.dup2(fd, stream)
        os.close(fd)
    os.environ.update(request.get("env", {}))
    if request.get("file_size") is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (request["file_size"], request["file_size"]))
    ticks = Ticks(request.get("die_at"), request.get("count"))
    if ticks.at is not None or ticks.report is not None:
        ticks.install()
    if "script" in request:
        sys.argv = [request["script"]]
        runpy.run_path(request["script"], run_name="__main__")
        return 0
    from mqnet.cli.main import run_app

    sys.argv = ["mqnet", *request["args"]]
    code = run_app()
    if ticks.report is not None:
        Path(ticks.report).write_text(str(ticks.n))
    return code


def end(request: dict) -> None:
    # without the interpreter's farewell, which takes longer than most commands
    code = 1
    try:
        code = become(request)
        sys.stdout.flush()
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def serve() -> None:
    preload()
    gc.freeze()  # what is there now is never collected: children share its pages
    replies = os.dup(1)  # a bare descriptor: standard output becomes the children's own
    for line in sys.stdin:
        request = json.loads(line)
        if "wait" in request:
            _, status = os.waitpid(request["wait"], 0)
            reply = {"code": os.waitstatus_to_exitcode(status)}
        else:
            pid = os.fork()
            # a group of its own, there before anyone can signal it: parent and child both see to it, one comes first
            os.setpgid(pid, pid)
            if pid == 0:
                end(request["start"])
            reply = {"pid": pid}
        os.write(replies, (json.dumps(reply) + "\n").encode())


if __name__ == "__main__":
    serve()
