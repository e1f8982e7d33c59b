"""Who runs what, when, and who may say so."""
