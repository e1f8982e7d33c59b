"""Who an author is: addresses and names joined to people, people grouped into teams, bots told apart.

Applied when a report is made. What is stored is what the commits say.
"""
