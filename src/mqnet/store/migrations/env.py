"""Runs the migrations on the connection that `mqnet.store.schema.migrate` opened."""

from alembic import context

from mqnet.store.tables import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata, render_as_batch=True)
with context.begin_transaction():
    context.run_migrations()
