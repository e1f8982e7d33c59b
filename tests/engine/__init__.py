"""Tests of the engine: every step, crashed, delayed and made twice, on both databases."""
