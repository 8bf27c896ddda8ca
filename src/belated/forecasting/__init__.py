"""What will still come of rows that have arrived, and of those still to arrive: counts or value, by day and by group, with bands.

May import evaluation and models, and the classifier; its results are plain data, which reports draw.
"""
