"""The use-cases of the code index, for the faces. None needs a workspace: any tree will do."""
