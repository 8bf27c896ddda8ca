"""What happened, and what was known when: event logs, snapshots, labels and their times.

May import tables, cluster and features (a log may hold hashed fields).
"""
