"""What a command reads from a terminal and writes to it: values, tables, progress, questions."""
