"""An index with as many symbols as wanted, of names that are made of usual words."""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tsuzuki.collectors.codeindex.extract import SymbolRow
from tsuzuki.collectors.codeindex.index_file import IndexFile
from tsuzuki.collectors.codeindex.parsing.parsed_file import FileOutcome, ParsedFile
from tsuzuki.collectors.codeindex.queries import files
from tsuzuki.collectors.codeindex.queries.names import NameIds
from tsuzuki.collectors.codeindex.queries.schema import make_name_indexes

SYMBOLS_PER_FILE = 20
FILES_PER_BATCH = 400
WORDS = (
    "account active build cache change check client code column commit config connection content count "
    "create cursor data date default delete entry error event field file filter find format group handler "
    "header index item key label language lease length line list load lock message model name node number "
    "option order owner page parse part path pattern place plan process progress query queue read record "
    "reference request result role root row run schema scope search select server session signature size "
    "source start state status store stream symbol table target task text thread time token total tree "
    "type update user value version view watch word worker write"
).split()


@contextmanager
def filled(folder: Path, symbols: int) -> Iterator[tuple[IndexFile, list[str]]]:
    """The open index, and the names in it."""
    chance = random.Random(3)
    count = symbols // SYMBOLS_PER_FILE
    names: set[str] = set()
    with IndexFile.open(folder, folder=folder) as index:
        name_ids = NameIds()
        for start in range(0, count, FILES_PER_BATCH):
            numbers = range(start, min(start + FILES_PER_BATCH, count))
            batch = [_file(chance, number) for number in numbers]
            names.update(row[0] for file in batch for row in file.symbols)
            with index.transaction(lambda _: True) as connection:
                files.put_files(connection, batch, names=name_ids, now_ns=1)
        with index.transaction(lambda _: True) as connection:
            make_name_indexes(connection)
        yield index, sorted(names)


def _file(chance: random.Random, number: int) -> ParsedFile:
    return ParsedFile(
        path=f"package{number // 100}/module{number}.py",
        size=1_000,
        mtime_ns=1,
        outcome=FileOutcome.INDEXED,
        hash=number.to_bytes(16, "big"),
        language="python",
        extractor_version=1,
        symbols=tuple(_symbol(chance, line) for line in range(1, 10 * SYMBOLS_PER_FILE, 10)),
    )


def _symbol(chance: random.Random, line: int) -> SymbolRow:
    words = chance.choices(WORDS, k=chance.randrange(2, 5))
    name = "_".join(words) if chance.random() < 0.6 else "".join(map(str.title, words))
    return (name, "function", "", line, line + 8, 4, f"def {name}(self, value)", f"The {words[0]}.")
