"""Is a model still right, and did a treatment work, before labels are final? From scores or arms and outcomes alone; no features and no model.

May import evaluation, data and what lies below them; its results are plain data, which reports draw.
"""
