"""The first schema."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "campaign",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("config", sa.Text, nullable=False),
        sa.Column("pool", sa.Text, nullable=False),
        sa.Column("created_at", sa.Float, nullable=False),
    )
    op.create_table(
        "rounds",
        sa.Column("round", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("budget", sa.Float, nullable=False),
        sa.Column("closed", sa.Boolean, nullable=False),
        sa.Column("state_before", sa.String(64)),
        sa.Column("snapshot", sa.String(64)),
        sa.Column("state_after", sa.String(64)),
        sa.Column("model", sa.String(64)),
        sa.Column("metrics", sa.Text, nullable=False),
        sa.Column("opened_at", sa.Float, nullable=False),
        sa.Column("closed_at", sa.Float),
    )
    op.create_table(
        "candidates",
        sa.Column("round", sa.Integer, sa.ForeignKey("rounds.round"), primary_key=True, autoincrement=False),
        sa.Column("position", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("item", sa.Text, nullable=False),
        sa.Column("score", sa.Float, nullable=False),
    )
    op.create_table(
        "answers",
        sa.Column("item", sa.Text, primary_key=True),
        sa.Column("round", sa.Integer, sa.ForeignKey("rounds.round"), nullable=False),
        sa.Column("position", sa.Integer, nullable=False),
        sa.Column("kind", sa.String(8), nullable=False),
        sa.Column("name", sa.Text),
        sa.Column("cost", sa.Float, nullable=False),
        sa.Column("annotator", sa.Text, nullable=False),
        sa.Column("answered_at", sa.Float, nullable=False),
        sa.UniqueConstraint("round", "position"),
    )
    op.create_table(
        "answer_log",
        sa.Column("seq", sa.Integer, primary_key=True, autoincrement=True),
        sa.Column("item", sa.Text, nullable=False),
        sa.Column("round", sa.Integer, nullable=False),
        sa.Column("kind", sa.String(8), nullable=False),
        sa.Column("name", sa.Text),
        sa.Column("cost", sa.Float, nullable=False),
        sa.Column("annotator", sa.Text, nullable=False),
        sa.Column("answered_at", sa.Float, nullable=False),
    )


def downgrade() -> None:
    for table in ("answer_log", "answers", "candidates", "rounds", "campaign"):
        op.drop_table(table)
