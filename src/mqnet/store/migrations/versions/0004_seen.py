"""How much of the log of answers a round was ranked on."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("rounds", sa.Column("answers_seen", sa.Integer))


def downgrade() -> None:
    op.drop_column("rounds", "answers_seen")
