"""A mailmap is read as git reads it: git itself is asked."""

import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tsuzuki.collectors.commits.people.mailmap import BYTES_MAX, Mailmap, kept_part

NAMES = ["Ann", "ANN", "Ann Abe", "bob", "Bob", "Ärö", "ärö"]
EMAILS = ["a@x", "A@X", "b@y", "bob@Y.z", "é@x", "É@x"]
CONTACTS = [(name, email) for name in NAMES for email in EMAILS]

_name = st.sampled_from([*NAMES, "", " ", "  Ann ", "#", "Proper Name"])
_email = st.sampled_from([*EMAILS, "", " a@x", "new@z"])
_pair = st.builds("{}<{}>".format, _name, _email)
_line = st.one_of(
    _pair,
    st.builds("{} {}".format, _pair, _pair),
    st.builds("{} {}".format, _pair, _name),
    st.builds("{} {}  # {}".format, _pair, _pair, _pair),
    st.builds("# {}".format, _pair),
    st.builds(" # {}".format, _pair),
    st.text(alphabet="<> #aA@x\t\r", max_size=20),
)


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("mailmap")
    subprocess.run(["git", "init", "--quiet", "--bare", str(folder)], check=True)
    return folder


def as_git_maps(repository: Path, content: str) -> list[str]:
    file = repository / "mailmap"
    file.write_text(content, encoding="utf-8", newline="")
    asked = "".join(f"{name} <{email}>\n" for name, email in CONTACTS)
    command = ["git", "-c", f"mailmap.file={file}", "check-mailmap", "--stdin"]
    done = subprocess.run(
        command, cwd=repository, input=asked.encode(), capture_output=True, check=True
    )
    return done.stdout.decode().splitlines()


def as_we_map(content: str) -> list[str]:
    mailmap = Mailmap(content)
    mapped = [(contact, mailmap.lookup(*contact)) for contact in CONTACTS]
    return [
        f"{name if to.name is None else to.name} <{email if to.email is None else to.email}>"
        for (name, email), to in mapped
    ]


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(lines=st.lists(_line, max_size=8))
def test_every_author_is_mapped_as_git_maps_it(repository: Path, lines: list[str]) -> None:
    content = "\n".join(lines)
    assert as_we_map(content) == as_git_maps(repository, content)


@pytest.mark.parametrize(
    "content",
    [
        "Ann Abe <a@x>\n",
        "<new@z> <a@x>\n",
        "Ann Abe <new@z> <A@x>\r\n",
        "Ann Abe <new@z> ANN <a@X>\nOther <b@y>\n",
        "Ann <a@x>\n<new@z> <a@x>\nAnn Abe <a@x>\n",
    ],
)
def test_all_four_forms_of_a_line(repository: Path, content: str) -> None:
    assert as_we_map(content) == as_git_maps(repository, content)
    assert as_we_map(content) != as_we_map("")


def test_of_a_huge_file_whole_lines_are_kept() -> None:
    kept = kept_part(b"Ann <a@x>\n" * 200_000 + b"\xff")
    assert len(kept) <= BYTES_MAX
    assert kept.endswith("Ann <a@x>\n")
    assert kept_part(b"\xff <a@x>") == "\ufffd <a@x>"
