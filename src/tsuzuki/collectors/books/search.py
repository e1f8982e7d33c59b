"""What a job searches for, as its source is asked."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Search:
    """What is searched for, and the options that shape the list of what is found."""

    text: str
    print_type: str | None = None
    lang_restrict: str | None = None
    order_by: str | None = None

    @property
    def list_options(self) -> dict[str, str]:
        """Under the names of the source, those that were said."""
        options = {
            "printType": self.print_type,
            "langRestrict": self.lang_restrict,
            "orderBy": self.order_by,
        }
        return {name: value for name, value in options.items() if value is not None}
