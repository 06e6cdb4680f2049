"""`mqnet export` and `predict`: what a campaign has come to."""

from __future__ import annotations

import json
from pathlib import Path

from mqnet.cli.bars import Bar
from mqnet.errors import ConfigError, nearest_name
from mqnet.project.export import FORMATS, Format, answered, export, kept
from mqnet.project.folder import opened, root_of


def labels(
    folder: Path, form: str, out: Path, with_ood: bool, with_skipped: bool, image_prefix: str, as_json: bool
) -> None:
    """Write the answered items."""
    with opened(folder) as (store, settings):
        lines = kept(answered(store), with_ood=with_ood, with_skipped=with_skipped)
        done = export(
            out,
            _format(form),
            lines,
            kind=settings.kind,
            name=settings.name,
            classes=store.config().classes,
            root=root_of(folder, settings),
            image_prefix=image_prefix,
        )
    if as_json:
        print(done.json())
        return
    more = "".join(f", {n} {what}" for n, what in ((done.ood, "none of these"), (done.skipped, "skipped")) if n)
    print(f"{done.items} items ({done.known} known{more}) as {form}: {out}")


def model(folder: Path, out: Path, as_json: bool) -> None:
    """Write the model of all answers."""
    from mqnet.loop.learner import ActiveLearner
    from mqnet.project.model_file import Preprocessing, write_model
    from mqnet.project.predict import predictor

    with opened(folder) as (_, settings), ActiveLearner.open(folder, looking=True) as learner:
        found = predictor(learner)
        paths = write_model(out, found, Preprocessing(settings.kind, settings.encoder, found.dim))
    if as_json:
        junk = {"threshold": found.sorter.threshold, "threshold_how": found.sorter.how}
        print(json.dumps({"files": [str(path) for path in paths], "classes": list(found.classes), **junk}))
        return
    print(f"model: {out} ({', '.join(path.name for path in paths)})")
    print(f"'none of these' above {found.sorter.threshold:.3f}, {found.sorter.how}.")


def predict(folder: Path, items: Path | None, out: Path, text_column: str | None, as_json: bool) -> None:
    """Write what every item of the pool, or of a new source, probably is."""
    from mqnet.loop.learner import ActiveLearner
    from mqnet.project.predict import predict_to, predictor
    from mqnet.project.vectors import new_vectors

    with opened(folder) as (store, settings), ActiveLearner.open(folder, looking=True) as learner:
        found, said = predictor(learner), dict[str, str]()
        with Bar("predictions", as_json) as bar:
            if items is None:
                pool = learner.pool
                said = {line.item: line.label for line in answered(store)}
            else:
                pool = new_vectors(folder, settings, items, text_column, bar.watch)
            done = predict_to(out, found, pool, pool.ids, said, bar.watch)
    if as_json:
        print(done.json())
        return
    counts = ", ".join(f"{name} {n}" for name, n in done.counts.items())
    print(f"{done.n_items} items: {counts}\n'none of these' above {done.threshold:.3f}, {done.threshold_how}.\n{out}")


def _format(name: str) -> Format:
    for known in FORMATS:
        if name == known:
            return known
    raise ConfigError(f"'{name}' is no format.{nearest_name(name, FORMATS)}")
