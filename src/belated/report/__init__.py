"""What a person sees: a summary (plain data) becomes charts, and charts become one page that needs nothing else.

Imports nothing from other rooms: the summary is all it knows.
"""
