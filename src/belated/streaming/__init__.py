"""Learning from a stream: events to records (`stream`), records to weights (`methods/`, one paper a file), weights to an online model.

May import everything but the command line.
"""
