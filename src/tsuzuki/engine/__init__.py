"""Who runs what, when, and who may say so: leader, worker, and what connects them."""
