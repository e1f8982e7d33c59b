"""`python -m tests.soak --seconds 600 --seed 7`: the soak outside pytest, for as long as wanted."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

if __name__ == "__main__":  # processes that are forked import this module too
    from soak.command import main

    sys.exit(main(sys.argv[1:]))
