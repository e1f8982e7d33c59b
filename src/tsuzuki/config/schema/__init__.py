"""The keys of `tsuzuki.yaml`: their types, bounds and defaults, and what is wrong with a file."""
