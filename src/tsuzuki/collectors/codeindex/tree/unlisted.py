"""Repositories whose files git did not list, because it hangs, refuses or is missing.

A walk finds their files, but it does not know the ignore rules that only git's configuration names. So what a walk
found is never mixed with what git listed: an index that has files of such a folder from a listing gets no new ones
there. Where it has none, those of the walk are stored and the folder is marked until git lists it. Callers from outside
are shown nothing of a marked folder.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from tsuzuki.collectors.codeindex.tree.scan import Scan, is_below


def to_mark(scan: Scan, known: Iterable[str], marked: Sequence[str]) -> list[str]:
    """The unlisted folders of a scan of which the index has no file that git listed. `marked` are those so far."""
    known = [*known] if scan.unlisted_folders else []
    return [
        folder
        for folder in scan.unlisted_folders
        if folder in marked
        or is_below(folder, marked)
        or not any(is_below(path, [folder]) for path in known)
    ]


def storable(scan: Scan, known: Collection[str], marked: Sequence[str]) -> Scan:
    """The scan without files that must not be stored, because git listed others in their folder before."""
    kept = {*to_mark(scan, known, marked)}
    closed = [folder for folder in scan.unlisted_folders if folder not in kept]
    if not closed:
        return scan
    files = [one for one in scan.files if one.path in known or not is_below(one.path, closed)]
    return replace(scan, files=files)
