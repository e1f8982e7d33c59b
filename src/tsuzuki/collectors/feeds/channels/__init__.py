"""Where posts go: each kind of account behind one protocol."""
