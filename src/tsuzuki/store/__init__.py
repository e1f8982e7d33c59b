"""The only room that knows a database: tables, migrations and one module of statements per noun."""
