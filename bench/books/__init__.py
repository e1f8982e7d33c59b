"""Benchmark of books: our collection beside a bare loop that does the same work, and beside dlt."""
