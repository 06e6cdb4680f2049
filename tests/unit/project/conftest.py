"""Projects for the tests of this room."""

from small_project import make

__all__ = ["make"]
