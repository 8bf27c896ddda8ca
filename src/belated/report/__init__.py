"""What a person sees: pictures of plain data, and pages that hold them and need nothing else.

A picture is a function of axes, a summary and a palette; pages draw it as SVG, for each width, and :mod:`belated.plot` on axes of matplotlib's.

Imports nothing from other rooms: the summary is all it knows.
"""
