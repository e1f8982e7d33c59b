"""Commands: programs of any kind, each under a supervisor that ends it with its worker."""
