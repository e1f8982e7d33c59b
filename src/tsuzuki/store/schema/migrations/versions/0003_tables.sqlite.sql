-- A run of an isolated function can end with its process. SQLite changes a CHECK only by writing the definition of the
-- table, which spares a copy of all runs. The table that is created and dropped tells other connections to read it anew.
PRAGMA writable_schema = ON;
UPDATE sqlite_schema SET sql = replace(sql, '''handler_unknown'', ''arguments_invalid''', '''handler_unknown'', ''crashed'', ''memory_limit'', ''arguments_invalid''')
WHERE type = 'table' AND name = 'tsuzuki_job_runs';
CREATE TABLE tsuzuki_reread (id INTEGER);
DROP TABLE tsuzuki_reread;
PRAGMA writable_schema = RESET;
