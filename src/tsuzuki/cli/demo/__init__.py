"""`tsuzuki demo`: its workspace, its stand-ins, and what a collector adds to it."""
