"""The same work as a run of a books job: engine, fence, quota, log and progress included.

python -m bench.books.ours <base url> <folder>      prints seconds and peak memory
"""

import json
import resource
import sys
import time
from pathlib import Path

import tsuzuki.collectors.books.collect  # noqa: F401 -- for its effect: a served process has it loaded long before
from tsuzuki.cli.serving import spare_the_lasting
from tsuzuki.engine.role import Role
from tsuzuki.services.runs import Request
from tsuzuki.wiring.application import opened
from tsuzuki.wiring.engine import build_engine

FILE = """
books: {{base_url: "{base_url}", api_key: k, daily_limit: 1000000}}
jobs:
  novelties: {{type: books, queries: [python], max_per_run: {most}, mail_limit: 0}}
"""
MOST = 10_000


def main() -> None:
    base_url, folder = sys.argv[1], Path(sys.argv[2])
    (folder / "tsuzuki.yaml").write_text(FILE.format(base_url=base_url, most=MOST))
    with opened(environ={}, cwd=folder) as application:
        application.jobs.apply()
        engine = build_engine(application, Role())
        application.runs.wake_by(engine.wakeups.leader.wake)
        spare_the_lasting()  # as `tsuzuki up` does before it starts
        engine.start()
        started = time.perf_counter()
        run_id = application.runs.submit(Request(job="novelties")).run_id
        # The process itself knows when the end is stored: polling the database
        # would be measured with it.
        while not engine.ended:
            time.sleep(0.005)
        seconds = time.perf_counter() - started
        run = application.runs.get(run_id).run
        engine.shut_down()
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    items = run.result["collect"]["returned"]
    print(json.dumps({"items": items, "seconds": seconds, "memory_mb": memory}))


if __name__ == "__main__":
    main()
