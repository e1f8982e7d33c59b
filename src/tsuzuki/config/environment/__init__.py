"""Environment variables: their values, `${NAME}` in text, and the URLs that are given in them."""
