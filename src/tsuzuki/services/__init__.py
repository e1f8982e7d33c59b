"""The use-cases, each once, for every face: command line, library, web, MCP."""
