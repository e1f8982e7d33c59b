"""What the tests stand on: real databases, a clock that can be moved, small makers."""
