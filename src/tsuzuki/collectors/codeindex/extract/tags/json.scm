(pair key: (string) @name) @def.key
