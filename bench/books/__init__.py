"""Book collection benchmark: our collector compared with a bare loop and with dlt."""
