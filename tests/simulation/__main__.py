"""`python -m tests.simulation 7` replays a seed; `--seeds 0-100000` searches for one that violates an invariant."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from simulation.command import main

sys.exit(main(sys.argv[1:]))
