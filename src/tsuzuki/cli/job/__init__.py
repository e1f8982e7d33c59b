"""`tsuzuki job`: its verbs, and what they ask and show."""
