"""Named forms of Meta-Query-Net: the default, the paper's, and what the released code does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from mqnet.errors import ConfigError, nearest_name
from mqnet.meta.fit import FitOptions
from mqnet.meta.skyline import FORMS, Form

Transform = Literal["clip", "exp", "rank"]
FirstRound = Literal["value", "product", "sum"]


@dataclass(frozen=True)
class Recipe:
    """Everything that makes one form of the method; docs/findings.md holds the figures behind the default.

    `transform`: clipped z-scores, their exp, or normal ranks. `first_round`: how a query is ranked before any net is
    trained. `value_input`: log(P(known) * I) as a further input, on which the net starts; `lean`: the weights the other
    inputs start with beside its 0.5. `replay`: query sets learned from, the newest ones; None for all. `sharpness` g:
    items are drawn without replacement with odds in proportion to exp(g u), u the score on the scale of the log value;
    None or 0 ranks by the score. With fewer than `sure_after` known answers a class g is smaller, down to a quarter:
    early scores deserve less trust. `cost_aware`: u less the log of the expected cost. `query_scaled`: training inputs
    are standardised over the query, and informativeness is raw.
    """

    purity: str
    informativeness: str
    form: Form
    fit: FitOptions
    purity_options: tuple[tuple[str, object], ...] = ()
    transform: Transform = "clip"
    first_round: FirstRound = "value"
    value_input: bool = True
    lean: float = 0.01
    replay: int | None = None
    sharpness: float | None = 2.0
    sure_after: float = 8.0
    cost_aware: bool = True
    cost_after: float = 0.0
    warm_start: bool = False
    query_scaled: bool = False

    def __post_init__(self) -> None:
        if self.replay is not None and self.replay < 1:
            raise ConfigError(f"replay is {self.replay}: the net learns from at least one query; leave it out for all.")
        if self.sure_after <= 0 or self.lean <= 0:
            raise ConfigError("mqnet's sure_after and lean must be above 0.")
        if self.query_scaled and self.value_input:
            raise ConfigError(
                "inputs scaled over the query (variant 'reference') have no value input: drop value_input."
            )


RECIPES: Mapping[str, Recipe] = {
    "default": Recipe(purity="evidence", informativeness="margin", form=FORMS["default"], fit=FitOptions()),
    # sigmoid output, ReLU weights, non-negative biases, exp inputs, usual start, printed loss, SGD, the sum first
    "paper": Recipe(
        purity="csi",
        purity_options=(("reference", "ood"),),
        informativeness="predicted_loss",
        form=FORMS["paper"],
        fit=FitOptions(
            loss="printed", optimiser="sgd", n_epochs=100, lr=0.01, decay=0.1, weight_decay=5e-4, shrink=0.0, batch=64
        ),
        transform="exp",
        first_round="sum",
        value_input=False,
        replay=1,
        sharpness=None,
        cost_aware=False,
        warm_start=True,
    ),
    "reference": Recipe(
        purity="csi",
        purity_options=(("reference", "in"),),
        informativeness="predicted_loss",
        form=FORMS["reference"],
        fit=FitOptions(
            loss="hinge", margin=1.0, optimiser="sgd", n_epochs=100, lr=0.001, decay=1.0, shrink=0.0, batch=16,
            order_ties=True,
        ),
        transform="exp",
        first_round="sum",
        value_input=False,
        replay=1,
        sharpness=None,
        cost_aware=False,
        query_scaled=True,
    ),
}  # fmt: skip


def recipe(name: str) -> Recipe:
    """The form of this name; an unknown one is an error that lists them."""
    if name not in RECIPES:
        raise ConfigError(f"no variant of mqnet is called '{name}'.{nearest_name(name, RECIPES)}")
    return RECIPES[name]
