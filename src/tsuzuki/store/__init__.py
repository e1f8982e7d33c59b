"""The only package that knows the engine's database: one module of statements per noun."""
