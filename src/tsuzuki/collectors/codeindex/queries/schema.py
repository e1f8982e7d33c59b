"""The tables of an index file.

`names` has every name once, whether defined or only referred to. `symbol_names` (trigrams, for substrings) and
`name_parts` (words of camelCase and snake_case, in lower case) have the names for which `is_defined` is 1. A name
may stay there after its last definition went: `symbols` is what counts.

`mentions` says which files may contain a name as an identifier. Where in a file, and what each place means, is found
when it is asked for. `uses` counts what the tags query takes for a use; it is 0 for a name that may only be a local
variable, or a word of a comment.

The indexes by name are made when the first build completes; until then a lookup reads the whole table.

`builds` has one row, for the latest build. `token` grows with each claim; a writer whose token is not the stored
one has lost the file and writes nothing. `ended_builds` has the builds that ended in the last minutes, so that every
process can report them after the next build started.
"""

import sqlite3

SCHEMA_VERSION = 2
APPLICATION_ID = 0x54737A69

TABLES = """
CREATE TABLE meta (
    key TEXT PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE files (
    id INTEGER PRIMARY KEY,
    path TEXT NOT NULL UNIQUE,
    size INTEGER NOT NULL CHECK (size >= 0),
    mtime_ns INTEGER NOT NULL,
    hash BLOB,
    language TEXT,
    extractor TEXT,
    extractor_version INTEGER,
    outcome TEXT NOT NULL CHECK (outcome IN (
        'indexed', 'syntax_errors', 'no_grammar', 'binary', 'too_large', 'long_line', 'unreadable', 'failed'
    )),
    error TEXT,
    indexed_at_ns INTEGER NOT NULL
);

CREATE TABLE symbols (
    id INTEGER PRIMARY KEY,
    file_id INTEGER NOT NULL REFERENCES files (id),
    name TEXT NOT NULL,
    kind TEXT NOT NULL,
    container TEXT NOT NULL,
    line INTEGER NOT NULL,
    end_line INTEGER NOT NULL,
    col INTEGER NOT NULL,
    signature TEXT NOT NULL,
    doc TEXT NOT NULL
);
CREATE INDEX symbols_by_file ON symbols (file_id);

CREATE TABLE names (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    is_defined INTEGER NOT NULL DEFAULT 0 CHECK (is_defined IN (0, 1))
);
CREATE VIRTUAL TABLE symbol_names USING fts5 (
    name, content = 'names', content_rowid = 'id', tokenize = 'trigram', columnsize = 0
);
CREATE TABLE name_parts (
    part TEXT NOT NULL,
    name_id INTEGER NOT NULL REFERENCES names (id),
    PRIMARY KEY (part, name_id)
) WITHOUT ROWID;

CREATE TABLE mentions (
    file_id INTEGER NOT NULL REFERENCES files (id),
    name_id INTEGER NOT NULL REFERENCES names (id),
    uses INTEGER NOT NULL,
    PRIMARY KEY (file_id, name_id)
) WITHOUT ROWID;

CREATE TABLE builds (
    only_row INTEGER PRIMARY KEY CHECK (only_row = 1),
    token INTEGER NOT NULL,
    id TEXT,
    status TEXT CHECK (status IN ('running', 'completed', 'failed')),
    processed INTEGER NOT NULL DEFAULT 0,
    total INTEGER NOT NULL DEFAULT 0,
    rate REAL NOT NULL DEFAULT 0 CHECK (rate >= 0),
    result TEXT,
    error TEXT,
    started_at TEXT,
    ended_at TEXT,
    ended_at_ns INTEGER,
    owner_pid INTEGER,
    owner_start TEXT,
    owner_host TEXT,
    heartbeat_ns INTEGER,
    CHECK (processed <= total),
    CHECK ((id IS NULL) = (status IS NULL)),
    CHECK (status <> 'completed' OR result IS NOT NULL),
    CHECK (status <> 'failed' OR error IS NOT NULL)
);
INSERT INTO builds (only_row, token) VALUES (1, 0);

CREATE TABLE ended_builds (
    id TEXT PRIMARY KEY,
    ended_at_ns INTEGER NOT NULL,
    job TEXT NOT NULL
) WITHOUT ROWID;
"""

_NAME_INDEXES = (
    "CREATE INDEX IF NOT EXISTS symbols_by_name ON symbols (name)",
    "CREATE INDEX IF NOT EXISTS symbols_by_lower_name ON symbols (lower(name))",
    "CREATE INDEX IF NOT EXISTS mentions_by_name ON mentions (name_id)",
)


def make_name_indexes(connection: sqlite3.Connection) -> None:
    """Make the indexes by name, unless they are there. A first build does so when it completes: made at once they
    take a third of the time that they take row by row."""
    for statement in _NAME_INDEXES:
        connection.execute(statement)
