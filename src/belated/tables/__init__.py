"""Tables of any kind, in memory and in files, and the one form of complaint about their rows.

The ground floor: imports nothing from other rooms.
"""
