"""Fetching: which feeds are due, the request and the answer of each, and how each fares."""
