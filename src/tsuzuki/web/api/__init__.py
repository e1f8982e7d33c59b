"""The routes below `/api/v1`, a file per noun, with the models of its requests and answers."""
