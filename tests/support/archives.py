"""Tar archives, extracted safely by every Python 3.11: `extractall` has its `filter` only since 3.11.4."""

import tarfile
from pathlib import Path


def extract(archive: tarfile.TarFile, folder: Path) -> None:
    """Extract files, folders and links. A member that would end up outside the folder is refused."""
    inside = folder.resolve()
    for member in archive:
        if not (member.isfile() or member.isdir() or member.issym() or member.islnk()):
            raise tarfile.ExtractError(f"{member.name} is neither a file, a folder nor a link")
        for path in _paths_of(member, inside):
            if not path.resolve().is_relative_to(inside):
                raise tarfile.ExtractError(f"{member.name} leads out of the folder")
        member.uid = member.gid = -1
        member.uname = member.gname = ""
        member.mode = (member.mode & 0o755) | 0o600 | (0o100 if member.isdir() else 0)
        archive.extract(member, inside, numeric_owner=True)


def _paths_of(member: tarfile.TarInfo, inside: Path) -> list[Path]:
    """Target path of an archive member, and the link's target if it is a link."""
    place = inside / member.name
    if member.issym():
        return [place, place.parent / member.linkname]
    return [place, inside / member.linkname] if member.islnk() else [place]
