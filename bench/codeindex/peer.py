"""Index the tree with code-index-mcp's own builder, using the interpreter it is installed in.

<python with code-index-mcp> peer.py <root> <database>
"""

import json
import logging
import resource
import sys
import time

from code_index_mcp.indexing.sqlite_index_builder import (  # type: ignore[import-not-found]  # installed on demand
    SQLiteIndexBuilder,
)
from code_index_mcp.indexing.sqlite_store import (  # type: ignore[import-not-found]  # installed on demand
    SQLiteIndexStore,
)


def main() -> None:
    root, database = sys.argv[1:]
    logging.disable(logging.CRITICAL)
    started = time.perf_counter()
    store = SQLiteIndexStore(database)
    store.initialize_schema()
    stats = SQLiteIndexBuilder(root, store).build_index()
    seconds = time.perf_counter() - started
    assert not stats["timed_out"], stats
    used = resource.getrusage(resource.RUSAGE_SELF)
    figures = {
        "seconds": seconds,
        "cpu_seconds": used.ru_utime + used.ru_stime,
        "files": stats["files"],
        "symbols": stats["symbols"],
        "memory_mb": round(used.ru_maxrss / 1024),
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
