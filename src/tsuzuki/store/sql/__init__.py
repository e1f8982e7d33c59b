"""How SQL reaches a database: opening it, transactions, prepared statements, batches, types, errors."""
