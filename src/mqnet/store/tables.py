"""The database schema, said once. A change here comes with a migration; a test compares the two."""

from __future__ import annotations

import sqlalchemy as sa

metadata = sa.MetaData()

campaign = sa.Table(
    "campaign",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("config", sa.Text, nullable=False),
    sa.Column("pool", sa.Text, nullable=False),
    sa.Column("created_at", sa.Float, nullable=False),
)

rounds = sa.Table(
    "rounds",
    metadata,
    sa.Column("round", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("budget", sa.Float, nullable=False),
    sa.Column("closed", sa.Boolean, nullable=False),
    # digests of arrays: what the strategy was before ranking, what it stored with the query, what it became by learning
    sa.Column("state_before", sa.String(64)),
    sa.Column("snapshot", sa.String(64)),
    sa.Column("state_after", sa.String(64)),
    sa.Column("model", sa.String(64)),
    sa.Column("metrics", sa.Text, nullable=False),
    sa.Column("opened_at", sa.Float, nullable=False),
    sa.Column("closed_at", sa.Float),
    # as measured when the round began, as JSON; none where the stated costs are all that count
    sa.Column("costs", sa.Text),
)

candidates = sa.Table(
    "candidates",
    metadata,
    sa.Column("round", sa.Integer, sa.ForeignKey("rounds.round"), primary_key=True, autoincrement=False),
    sa.Column("position", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("item", sa.Text, nullable=False),
    sa.Column("score", sa.Float, nullable=False),
    sa.Column("audit", sa.Boolean, nullable=False, server_default=sa.false()),
)

answers = sa.Table(
    "answers",
    metadata,
    sa.Column("item", sa.Text, primary_key=True),
    sa.Column("round", sa.Integer, sa.ForeignKey("rounds.round"), nullable=False),
    sa.Column("position", sa.Integer, nullable=False),
    sa.Column("kind", sa.String(8), nullable=False),
    sa.Column("name", sa.Text),
    sa.Column("cost", sa.Float, nullable=False),
    sa.Column("annotator", sa.Text, nullable=False),
    sa.Column("answered_at", sa.Float, nullable=False),
    sa.Column("audit", sa.Boolean, nullable=False, server_default=sa.false()),
    sa.UniqueConstraint("round", "position"),
)

answer_log = sa.Table(
    "answer_log",
    metadata,
    sa.Column("seq", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("item", sa.Text, nullable=False),
    sa.Column("round", sa.Integer, nullable=False),
    sa.Column("kind", sa.String(8), nullable=False),
    sa.Column("name", sa.Text),
    sa.Column("cost", sa.Float, nullable=False),
    sa.Column("annotator", sa.Text, nullable=False),
    sa.Column("answered_at", sa.Float, nullable=False),
)
