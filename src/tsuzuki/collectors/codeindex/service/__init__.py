"""The use-cases of the code index, for the interfaces. None needs a workspace: any tree will do."""
