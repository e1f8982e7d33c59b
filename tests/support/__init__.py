"""Test support: real databases and servers, a movable clock, factories, and processes to kill."""
