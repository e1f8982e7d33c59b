"""The file `.mailmap` of a repository, read as git reads it.

All four forms of a line, comments, and comparison without case of ASCII letters, which is git's. A line that
git passes over is passed over.
"""

from typing import NamedTuple, TypeAlias

MAILMAP = ".mailmap"
BYTES_MAX = 1_000_000
"""Of a file that is kept; a longer one is cut after its last whole line."""

_BLANK = " \t\r\n"


class Mapped(NamedTuple):
    """What stands in place of a name and an address; None leaves it as it is."""

    name: str | None = None
    email: str | None = None


class _OfAddress(NamedTuple):
    """What a commit address is mapped to: for any name, and for some names."""

    any_name: Mapped
    names: dict[str, Mapped]


Identity: TypeAlias = tuple[str, str]
"""Name and address."""


class Mailmap:
    """Replacements of names and addresses, as one file gives them."""

    def __init__(self, content: str) -> None:
        self._addresses: dict[str, _OfAddress] = {}
        for line in content.split("\0", 1)[0].split("\n"):
            self._read(line)

    def __bool__(self) -> bool:
        return bool(self._addresses)

    def lookup(self, name: str, email: str) -> Mapped:
        """What the file says about an author; nothing if it does not know the address."""
        found = self._addresses.get(_folded(email))
        if found is None:
            return Mapped()
        return found.names.get(_folded(name), found.any_name)

    def _read(self, line: str) -> None:
        if line.startswith("#"):
            return
        first = _name_and_address(line)
        if first is None or not first[1]:
            return
        new_name, new_email, rest = first
        second = _name_and_address(rest)
        if second is None:
            self._add(Mapped(name=new_name), "", new_email)
        else:
            self._add(Mapped(name=new_name, email=new_email), second[0] or "", second[1])

    def _add(self, mapped: Mapped, old_name: str, old_email: str) -> None:
        """A later line adds to what an earlier one says for any name, and replaces it for one name."""
        key = _folded(old_email)
        before = self._addresses.get(key, _OfAddress(Mapped(), {}))
        if old_name:
            before.names[_folded(old_name)] = mapped
            self._addresses[key] = before
            return
        merged = Mapped(mapped.name or before.any_name.name, mapped.email or before.any_name.email)
        self._addresses[key] = before._replace(any_name=merged)


def kept_part(content: bytes) -> str:
    """What is kept of a file: text, and not more than `BYTES_MAX` of it."""
    if len(content) > BYTES_MAX:
        content = content[: content.rfind(b"\n", 0, BYTES_MAX) + 1]
    return content.decode("utf-8", "replace")


def _name_and_address(text: str) -> tuple[str | None, str, str] | None:
    """`Name <address> rest`; None if there is no address in it."""
    name, opened, behind = text.partition("<")
    address, closed, rest = behind.partition(">")
    if not opened or not closed:
        return None
    return name.strip(_BLANK) or None, address, rest


def _folded(text: str) -> str:
    return text.lower() if text.isascii() else "".join(c.lower() if c < "\x80" else c for c in text)
