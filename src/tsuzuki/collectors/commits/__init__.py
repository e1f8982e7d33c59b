"""Continues the collection of every project and branch: from the head it knew to the head of today."""
