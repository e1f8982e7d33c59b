"""How fast the engine is, against a floor measured in the same run."""
