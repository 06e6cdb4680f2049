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
    # the newest entry of `answer_log` when it was ranked; none in rounds from before this was noted
    sa.Column("answers_seen", sa.Integer),
)

candidates = sa.Table(
    "candidates",
    metadata,
    sa.Column("round", sa.Integer, sa.ForeignKey("rounds.round"), primary_key=True, autoincrement=False),
    sa.Column("position", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("item", sa.Text, nullable=False),
    sa.Column("score", sa.Float, nullable=False),
    sa.Column("audit", sa.Boolean, nullable=False, server_default=sa.false()),
    sa.Index("candidates_by_item", "item"),
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
    sa.Column("kind", sa.String(16), nullable=False),
    sa.Column("name", sa.Text),
    sa.Column("cost", sa.Float, nullable=False),
    sa.Column("annotator", sa.Text, nullable=False),
    sa.Column("answered_at", sa.Float, nullable=False),
)

# -- a project with people ---------------------------------------------------------------------------------------------

project = sa.Table(
    "project",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("settings", sa.Text, nullable=False),
)

items = sa.Table(
    "items",
    metadata,
    sa.Column("item", sa.Text, primary_key=True),
    sa.Column("position", sa.Integer, nullable=False),
    sa.Column("kind", sa.String(8), nullable=False),
    sa.Column("ref", sa.Text, nullable=False),
)

users = sa.Table(
    "users",
    metadata,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("role", sa.String(16), nullable=False),
    sa.Column("token_hash", sa.String(64), nullable=False),
    sa.Column("created_at", sa.Float, nullable=False),
    sa.Column("revoked", sa.Boolean, nullable=False),
)

votes = sa.Table(
    "votes",
    metadata,
    sa.Column("seq", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("item", sa.Text, nullable=False),
    # the round that was open for the item when it was answered; none for an early answer
    sa.Column("round", sa.Integer),
    sa.Column("annotator", sa.Text, nullable=False),
    sa.Column("kind", sa.String(8), nullable=False),
    sa.Column("name", sa.Text),
    sa.Column("seconds", sa.Float),
    sa.Column("view", sa.String(8), nullable=False),
    sa.Column("key", sa.String(64), nullable=False, unique=True),
    sa.Column("state", sa.String(16), nullable=False),
    # given back to its annotator by undo for correction: the next undo goes on to the one before
    sa.Column("returned", sa.Boolean, nullable=False),
    sa.Column("answered_at", sa.Float, nullable=False),
    sa.Index("votes_by_item", "item"),
    sa.Index("votes_by_annotator", "annotator", "returned"),
)

leases = sa.Table(
    "leases",
    metadata,
    sa.Column("item", sa.Text, primary_key=True),
    sa.Column("annotator", sa.Text, primary_key=True),
    sa.Column("until", sa.Float, nullable=False),
    # taken back by its annotator: offered to them before everything else
    sa.Column("first", sa.Boolean, nullable=False),
)

flags = sa.Table(
    "flags",
    metadata,
    sa.Column("item", sa.Text, primary_key=True),
    sa.Column("annotator", sa.Text, primary_key=True),
    sa.Column("note", sa.Text, nullable=False),
    sa.Column("flagged_at", sa.Float, nullable=False),
)

worker = sa.Table(
    "worker",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("state", sa.String(16), nullable=False),
    sa.Column("message", sa.Text, nullable=False),
    sa.Column("round", sa.Integer),
    sa.Column("since", sa.Float, nullable=False),
    sa.Column("heartbeat", sa.Float, nullable=False),
)

insights = sa.Table(
    "insights",
    metadata,
    sa.Column("round", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("data", sa.Text, nullable=False),
    sa.Column("created_at", sa.Float, nullable=False),
)
