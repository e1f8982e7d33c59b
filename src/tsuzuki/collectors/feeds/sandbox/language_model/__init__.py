"""What the stand-ins for language models share: answers by rule, and the count of requests paid."""
