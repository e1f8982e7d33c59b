(pair . [(bare_key) (quoted_key) (dotted_key)] @name) @def.key
(table . [(bare_key) (quoted_key) (dotted_key)] @name) @def.table
(table_array_element . [(bare_key) (quoted_key) (dotted_key)] @name) @def.table
