"""`python -m tests.simulation 7` tells the story of a seed; `--seeds 0-100000` looks for a bad one."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from simulation.command import main

sys.exit(main(sys.argv[1:]))
