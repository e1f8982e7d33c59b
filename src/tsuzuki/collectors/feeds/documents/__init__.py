"""Documents of strangers, read in a process of their own: feeds, pages and PDFs."""
