"""The git program: started so that it harms nothing, and what it writes read as values."""
