"""`tsuzuki run` and `tsuzuki run-due`: running, watching and looking at runs."""
