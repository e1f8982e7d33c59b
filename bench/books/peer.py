"""Book collection with dlt, installed on demand into its own environment.

<python with dlt> peer.py <base url> <folder>      prints seconds and peak memory
"""

import json
import os
import resource
import sys
import time

os.environ["DLT_TELEMETRY"] = os.environ["RUNTIME__DLTHUB_TELEMETRY"] = "false"

import dlt  # type: ignore[import-not-found]  # installed by PEER=, never with us
import requests  # type: ignore[import-untyped]  # it brings no types


def main() -> None:
    base_url, folder = sys.argv[1:]

    @dlt.resource(name="books", primary_key="id", write_disposition="merge")
    def books(start=dlt.sources.incremental("index", initial_value=-1)):  # noqa: B008 -- dlt reads the cursor from the default; it has no other way
        index = (start.last_value or -1) + 1
        with requests.Session() as session:
            while True:
                parameters = {"q": "python", "startIndex": index, "maxResults": 40, "key": "k"}
                items = session.get(f"{base_url}/volumes", params=parameters).json().get("items")
                if not items:
                    return
                yield [{**item, "index": index + i} for i, item in enumerate(items)]
                index += len(items)

    started = time.perf_counter()
    pipeline = dlt.pipeline(
        pipeline_name="books",
        pipelines_dir=f"{folder}/dlt",
        destination=dlt.destinations.sqlalchemy(f"sqlite:///{folder}/dlt.db"),
        dataset_name="main",
    )
    pipeline.run(books())
    seconds = time.perf_counter() - started
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    with pipeline.sql_client() as client:
        found = client.execute_sql("SELECT count(*) FROM tsuzuki_books")[0][0]
    print(json.dumps({"items": found, "seconds": seconds, "memory_mb": memory}))


if __name__ == "__main__":
    main()
