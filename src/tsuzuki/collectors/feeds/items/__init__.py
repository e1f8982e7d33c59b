"""Items: their life, their pages, and the steps that take each to its end."""
