"""What runs in a child: one function after the other, each with its context."""
