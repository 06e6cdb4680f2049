"""Who was drawn at random, and what answers were measured to cost when a round began."""

import json

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("rounds", sa.Column("costs", sa.Text))
    for table in ("candidates", "answers"):
        op.add_column(table, sa.Column("audit", sa.Boolean, nullable=False, server_default=sa.false()))
    # the first items of a random sample, as many as its budget bought whatever they were, are a uniform draw
    connection = op.get_bind()
    config = connection.execute(sa.text("SELECT config FROM campaign")).scalar()
    budget = connection.execute(sa.text("SELECT budget FROM rounds WHERE round = 0")).scalar()
    if config is None or budget is None:
        return
    costs = json.loads(config)["costs"]
    n_sure = int(budget / max(costs["known"], costs["ood"]) + 1e-9)
    for table in ("candidates", "answers"):
        update = sa.text(f"UPDATE {table} SET audit = :drawn WHERE round = 0 AND position < :n")
        connection.execute(update, {"drawn": True, "n": n_sure})


def downgrade() -> None:
    for table in ("candidates", "answers"):
        op.drop_column(table, "audit")
    op.drop_column("rounds", "costs")
