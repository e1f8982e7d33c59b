"""A file with comments in every place where people put them."""

from pathlib import Path
from typing import Any

from tsuzuki.config.yaml.document import read_document

FILE = """\
# At the top.
timezone: UTC   # where we live

jobs:
  # About hello.
  hello:
    command: [echo,   'hello']   # odd spacing stays
    schedule:
      # In the morning.
      daily_at: "09:00"   # before work
      timezone: Asia/Tokyo
    timeout: 10m  # plenty
    # max_retries: 3

  # About backup.
  backup:
    command:
    - pg_dump
    - --all
    enabled: false
    # The end of backup.

# At the bottom.
"""


def changed(path: Path, before: str = FILE) -> tuple[list[str], list[str]]:
    """The lines that went and the lines that came, anywhere in the file."""
    old, new = before.splitlines(), path.read_text().splitlines()
    return [line for line in old if line not in new], [line for line in new if line not in old]


def data(path: Path) -> Any:
    return read_document(path).data
