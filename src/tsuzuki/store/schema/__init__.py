"""Tables, and the migrations that bring a database to them."""
