"""sync.py SYSTEM: stands for a copy to or from another system; billing refuses the first connection."""

import os
import sys

SYSTEM = sys.argv[1]

print(f"connecting to {SYSTEM}", "with" if os.environ.get("SYNC_TOKEN") else "without", "a token")
if SYSTEM == "billing" and os.environ["TSUZUKI_ATTEMPT"] == "1":
    raise ConnectionError(f"{SYSTEM}.example refused the connection")
for page in range(1, 4):
    print(f"page {page} of 3", flush=True)
