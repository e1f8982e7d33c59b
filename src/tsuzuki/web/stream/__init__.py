"""Server-sent events: what changes, told to all that follow it. Read and rendered once for all of them."""
