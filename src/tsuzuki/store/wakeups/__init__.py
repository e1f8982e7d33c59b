"""Wake-ups between processes through the database: NOTIFY/LISTEN, or a watched SQLite file."""
