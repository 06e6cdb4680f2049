"""Projects with people: items to show, users, votes, leases, flags, the worker's state, insights."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    with op.batch_alter_table("answer_log") as table:  # room for 'withdrawn'
        table.alter_column("kind", existing_type=sa.String(8), type_=sa.String(16), existing_nullable=False)
    op.create_index("candidates_by_item", "candidates", ["item"])
    op.create_table(
        "project",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("settings", sa.Text, nullable=False),
    )
    op.create_table(
        "items",
        sa.Column("item", sa.Text, primary_key=True),
        sa.Column("position", sa.Integer, nullable=False),
        sa.Column("kind", sa.String(8), nullable=False),
        sa.Column("ref", sa.Text, nullable=False),
    )
    op.create_table(
        "users",
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("role", sa.String(16), nullable=False),
        sa.Column("token_hash", sa.String(64), nullable=False),
        sa.Column("created_at", sa.Float, nullable=False),
        sa.Column("revoked", sa.Boolean, nullable=False),
    )
    op.create_table(
        "votes",
        sa.Column("seq", sa.Integer, primary_key=True, autoincrement=True),
        sa.Column("item", sa.Text, nullable=False),
        sa.Column("round", sa.Integer),
        sa.Column("annotator", sa.Text, nullable=False),
        sa.Column("kind", sa.String(8), nullable=False),
        sa.Column("name", sa.Text),
        sa.Column("seconds", sa.Float),
        sa.Column("view", sa.String(8), nullable=False),
        sa.Column("key", sa.String(64), nullable=False, unique=True),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("returned", sa.Boolean, nullable=False),
        sa.Column("answered_at", sa.Float, nullable=False),
    )
    op.create_index("votes_by_item", "votes", ["item"])
    op.create_index("votes_by_annotator", "votes", ["annotator", "returned"])
    op.create_table(
        "leases",
        sa.Column("item", sa.Text, primary_key=True),
        sa.Column("annotator", sa.Text, primary_key=True),
        sa.Column("until", sa.Float, nullable=False),
        sa.Column("first", sa.Boolean, nullable=False),
    )
    op.create_table(
        "flags",
        sa.Column("item", sa.Text, primary_key=True),
        sa.Column("annotator", sa.Text, primary_key=True),
        sa.Column("note", sa.Text, nullable=False),
        sa.Column("flagged_at", sa.Float, nullable=False),
    )
    op.create_table(
        "worker",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("message", sa.Text, nullable=False),
        sa.Column("round", sa.Integer),
        sa.Column("since", sa.Float, nullable=False),
        sa.Column("heartbeat", sa.Float, nullable=False),
    )
    op.create_table(
        "insights",
        sa.Column("round", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("data", sa.Text, nullable=False),
        sa.Column("created_at", sa.Float, nullable=False),
    )


def downgrade() -> None:
    for table in ("insights", "worker", "flags", "leases", "votes", "users", "items", "project"):
        op.drop_table(table)
    op.drop_index("candidates_by_item", "candidates")
    with op.batch_alter_table("answer_log") as table:
        table.alter_column("kind", existing_type=sa.String(16), type_=sa.String(8), existing_nullable=False)
