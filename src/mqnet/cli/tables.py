"""`mqnet table`."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from mqnet.errors import ConfigError, nearest_name
from mqnet.experiment.stored import stored_config, stored_results
from mqnet.experiment.tables import FORMATS, TABLE, render, table
from mqnet.registry import load_plugin
from mqnet.store.blobs import write_durably


def show(
    folder: Path,
    kind: str,
    form: str,
    out: Path | None,
    options: Mapping[str, object],
    strategies: Sequence[str],
    scenarios: Sequence[str],
    shares: Sequence[float],
    costs: Sequence[float],
    plugins: Sequence[Path],
) -> None:
    """Print a table of a run, or write it to a file."""
    for plugin in (*stored_config(folder).plugins, *plugins):
        load_plugin(plugin)
    if form not in FORMATS:
        raise ConfigError(f"no format is called '{form}'.{nearest_name(form, FORMATS)}")
    TABLE.get(kind).check_options(options)
    results = stored_results(folder).only(strategies=strategies, scenarios=scenarios, shares=shares, costs=costs)
    # a file or a pipe has no width of its own: what is read there later is made for a usual terminal
    width = shutil.get_terminal_size().columns if out is None and sys.stdout.isatty() else 80
    text = render(table(results, kind, **options), form, width=width)
    if out is None:
        print(text)
    else:
        write_durably(out, f"{text}\n".encode())
        print(out)


def kinds() -> str:
    """Every kind with a line each."""
    width = max(map(len, TABLE.names()))
    return "\n".join(f"{name.ljust(width)}  {TABLE.get(name).summary}" for name in TABLE.names())
