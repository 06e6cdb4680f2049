"""A campaign on disk: one database of what was asked and answered, and a folder of arrays."""
