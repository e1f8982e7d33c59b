"""What a name means where it stands: lexical scopes, imports and members, from the syntax tree of the file."""
