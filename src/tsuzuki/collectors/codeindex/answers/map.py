"""The most important files of a tree: personalised PageRank over who uses whose names.

The weights of an edge: a long name of several words says more than a short one, a private name or one with many
definitions says little, and the hundredth use says less than the first. The same index gives the same map.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from tsuzuki.collectors.codeindex.answers.freshness import FreshFiles
from tsuzuki.collectors.codeindex.answers.symbol import family_of
from tsuzuki.collectors.codeindex.queries import graph
from tsuzuki.collectors.codeindex.queries.lookups import Symbol
from tsuzuki.collectors.codeindex.queries.names import parts_of

DAMPING = 0.85
ITERATIONS_MAX = 60
TOLERANCE = 1e-6
TELLING_LENGTH_MIN = 8
FEW_DEFINERS_MAX = 5
DEFINERS_MAX = 20
"""A name with more definitions tells nothing about where a use leads."""

FOCUS_WEIGHT = 50.0
"""Of an edge by a name in focus."""

FOCUS_SHARE = 0.8
"""Of the walks that start at a file in focus."""


@dataclass(frozen=True, kw_only=True)
class RankedFile:
    """A file, its share of the rank, and its most used definitions."""

    path: str
    rank: float
    symbols: list[Symbol]

    def as_dict(self) -> dict[str, Any]:
        return {
            "path": self.path,
            "rank": round(self.rank, 6),
            "symbols": [symbol.as_dict() for symbol in self.symbols],
        }


@dataclass
class Graph:
    """Edges from the file that uses a name to the file that defines it."""

    paths: dict[int, str] = field(default_factory=dict)
    out: dict[int, dict[int, float]] = field(default_factory=dict)
    names: dict[int, dict[str, dict[int, float]]] = field(default_factory=dict)
    """By defining file and name: the weight from each using file."""

    def add(self, user: int, definer: int, name: str, weight: float) -> None:
        targets = self.out.setdefault(user, {})
        targets[definer] = targets.get(definer, 0.0) + weight
        self.names.setdefault(definer, {}).setdefault(name, {})[user] = weight


def ranked_files(
    files: FreshFiles, *, focus_paths: Iterable[str], focus_names: Iterable[str]
) -> Iterator[tuple[str, float, dict[str, float]]]:
    """Path, rank and the rank that each of its names carries, the highest first."""
    if files.connection is None:
        return
    focus = {*focus_names}
    edges = _graph(files, focus)
    wanted = {*focus_paths}
    favoured = {number for number, path in edges.paths.items() if path in wanted}
    favoured |= {number for number, names in edges.names.items() if focus & names.keys()}
    ranks = page_rank(sorted(edges.paths), edges.out, favoured)
    order = sorted(edges.paths, key=lambda number: (-round(ranks[number], 12), edges.paths[number]))
    for number in order:
        yield edges.paths[number], ranks[number], _name_ranks(edges, ranks, number)


def _graph(files: FreshFiles, focus: set[str]) -> Graph:
    assert files.connection is not None  # noqa: S101 - the caller has looked
    edges = Graph()
    families = {}
    for number, path, language in graph.graph_files(files.connection):
        edges.paths[number] = path
        families[number] = family_of(language)
    definers: dict[int, list[int]] = {}
    names: dict[int, str] = {}
    for defined in graph.defined_names(files.connection):
        definers.setdefault(defined.name_id, []).append(defined.file_id)
        names[defined.name_id] = defined.name
    for used in graph.used_names(files.connection):
        if used.file_id not in families:
            continue
        family = families[used.file_id]
        targets = [one for one in definers.get(used.name_id, ()) if families.get(one) == family]
        if not targets or len(targets) > DEFINERS_MAX or used.file_id in targets:
            continue
        weight = name_weight(names[used.name_id], len(targets)) * math.sqrt(used.uses)
        weight *= FOCUS_WEIGHT if names[used.name_id] in focus else 1.0
        for target in targets:
            edges.add(used.file_id, target, names[used.name_id], weight / len(targets))
    return edges


def name_weight(name: str, definers: int) -> float:
    """How much a use of the name says."""
    weight = 1.0
    if len(name) >= TELLING_LENGTH_MIN and len(parts_of(name)) > 1:
        weight *= 10.0
    if name.startswith("_"):
        weight *= 0.1
    return weight * (0.1 if definers > FEW_DEFINERS_MAX else 1.0)


def page_rank(
    nodes: list[int], out: dict[int, dict[int, float]], favoured: set[int]
) -> dict[int, float]:
    """The rank of each node; the sum is 1. Who follows no edge goes to a favoured node, or to any if there are
    none."""
    if not nodes:
        return {}
    start = _start_shares(nodes, favoured)
    totals = {node: sum(targets.values()) for node, targets in out.items()}
    shares = {
        node: [(target, weight / totals[node]) for target, weight in targets.items()]
        for node, targets in out.items()
    }
    ranks = dict(start)
    for _ in range(ITERATIONS_MAX):
        lost = sum(rank for node, rank in ranks.items() if node not in shares)
        fresh = {node: (1 - DAMPING + DAMPING * lost) * start[node] for node in nodes}
        for node, targets in shares.items():
            flow = DAMPING * ranks[node]
            for target, share in targets:
                fresh[target] += flow * share
        change = sum(abs(fresh[node] - ranks[node]) for node in nodes)
        ranks = fresh
        if change < TOLERANCE:
            break
    return ranks


def _start_shares(nodes: list[int], favoured: set[int]) -> dict[int, float]:
    """Where a walk starts: anywhere, or mostly at the favoured nodes."""
    everywhere = (1 - FOCUS_SHARE if favoured else 1.0) / len(nodes)
    focused = FOCUS_SHARE / len(favoured) if favoured else 0.0
    return {node: everywhere + focused * (node in favoured) for node in nodes}


def _name_ranks(edges: Graph, ranks: dict[int, float], definer: int) -> dict[str, float]:
    totals = {
        user: sum(edges.out[user].values())
        for users in edges.names.get(definer, {}).values()
        for user in users
    }
    return {
        name: sum(ranks[user] * weight / totals[user] for user, weight in users.items())
        for name, users in edges.names.get(definer, {}).items()
    }


def code_map(
    files: FreshFiles,
    *,
    limit: int,
    symbols_max: int,
    focus_paths: Iterable[str] = (),
    focus_names: Iterable[str] = (),
    path_filter: Callable[[str], bool] = lambda _path: True,
) -> list[RankedFile]:
    """The `limit` highest files that pass the filter, each with its most used definitions by line."""
    ranked: list[RankedFile] = []
    for path, rank, names in ranked_files(files, focus_paths=focus_paths, focus_names=focus_names):
        if len(ranked) == limit:
            break
        file = files.get(path) if path_filter(path) else None
        if file is None:
            continue
        used = sorted(
            (symbol for symbol in file.symbols if symbol.name in names),
            key=lambda symbol: (-names[symbol.name], symbol.line),
        )
        best = used[:symbols_max] or list(file.symbols[:symbols_max])
        best.sort(key=lambda symbol: (symbol.line, symbol.column))
        ranked.append(RankedFile(path=path, rank=rank, symbols=best))
    return ranked
