"""The proof of the engine: every step, crashed, delayed and repeated, on both databases."""
