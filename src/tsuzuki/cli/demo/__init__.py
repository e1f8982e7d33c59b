"""`tsuzuki demo`: its workspace, its stand-ins, and the parts that collectors add."""
