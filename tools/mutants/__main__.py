"""Runs a sample of mutants: `python -m tools.mutants --number 60 --seed 7`."""

import sys

from tools.mutants.command import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
