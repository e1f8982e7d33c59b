"""Books: a collection of ours beside the barest loop that does the same work, and beside dlt."""
