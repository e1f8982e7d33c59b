"""The User-Agent of every request: name and version, where the project is, and whom its owner may write to.

It is the same for all requests of a process. The contact is the key `contact` of the configuration; the address of the
project is the homepage in the metadata of the distribution, if it names one.
"""

from functools import cache
from importlib.metadata import metadata

DISTRIBUTION = "tsuzuki"
_HOMEPAGE = "homepage"


class _Contact:
    text: str | None = None


def set_contact(contact: str | None) -> None:
    """Let all requests from now on name an email address or a web address, or none."""
    _Contact.text = contact


def user_agent() -> str:
    """The value of the header."""
    name, homepage = _product()
    about = [text for text in (homepage and f"+{homepage}", _Contact.text) if text]
    return f"{name} ({'; '.join(about)})" if about else name


@cache
def _product() -> tuple[str, str | None]:
    """Name and version, and the homepage."""
    found = metadata(DISTRIBUTION)
    urls = [url.partition(",") for url in found.get_all("Project-URL") or ()]
    homepages = [url.strip() for label, _, url in urls if label.strip().lower() == _HOMEPAGE]
    return f"{DISTRIBUTION}/{found['Version']}", next(iter(homepages), None)
