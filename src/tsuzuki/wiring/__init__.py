"""The only place where parts are joined: `collectors` (which there are), `application` (configuration, database
and services) and `engine`, which most commands do not need. Importing this package loads none of them."""
