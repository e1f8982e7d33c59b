"""Builds: who may build an index, as a job of which process, and the building itself."""
