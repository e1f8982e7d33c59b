"""The documentation: reference pages made from the code, and the static site made from `docs/`."""
