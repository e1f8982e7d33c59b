"""Two nodes under random kills, pauses and cuts, with all collectors at work; then everything is counted."""
