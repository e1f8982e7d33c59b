"""How sure it is which definition a use means."""

from enum import StrEnum


class Confidence(StrEnum):
    """How sure it is which definition a use means."""

    SAME_FILE = "same_file"
    SAME_PACKAGE = "same_package"
    """In Go, another file of the package."""
    IMPORTED = "imported"
    ONLY_DEFINITION = "only_definition"
    BY_NAME = "by_name"
    """Only the name is the same; `definitions` tells how many it may mean."""

    @property
    def is_exact(self) -> bool:
        return self is not Confidence.BY_NAME
