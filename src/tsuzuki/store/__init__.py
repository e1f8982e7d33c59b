"""The only room that knows the engine's database: one module of statements per noun."""
