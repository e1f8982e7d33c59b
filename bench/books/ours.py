"""Book collection as a run of a books job, including engine, fence, quota, log and progress.

python -m bench.books.ours <base url> <folder>      prints seconds and peak memory
"""

import json
import resource
import sys
import time
from pathlib import Path

import tsuzuki.collectors.books.collect  # noqa: F401 -- imported early, as in a serving process
from tsuzuki.services.garbage_collection import freeze_loaded_objects
from tsuzuki.services.runs import Request
from tsuzuki.wiring.application import opened

FILE = """
books: {{base_url: "{base_url}", api_key: "${{KEY:-k}}", daily_limit: 1000000}}
jobs:
  novelties: {{type: books, queries: [python], max_per_run: {most}, mail_limit: 0}}
"""
MOST = 10_000


def main() -> None:
    base_url, folder = sys.argv[1], Path(sys.argv[2])
    (folder / "tsuzuki.yaml").write_text(FILE.format(base_url=base_url, most=MOST))
    with opened(environ={}, cwd=folder) as application:
        application.jobs.apply()
        freeze_loaded_objects()  # as `tsuzuki up` does before it starts
        application.local_engine.start()
        started = time.perf_counter()
        run_id = application.runs.submit(Request(job="novelties")).run_id
        run = application.runs.wait(run_id)
        seconds = time.perf_counter() - started
        application.local_engine.stop()
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    items = run.result["collect"]["returned"]
    print(json.dumps({"items": items, "seconds": seconds, "memory_mb": memory}))


if __name__ == "__main__":
    main()
