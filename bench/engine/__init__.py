"""Engine benchmark, with peers and a lower bound measured in the same run."""
