"""Tsuzuki."""
