"""A log cut into partitions that are held in this process: what a cluster does, without one."""

from __future__ import annotations

from itertools import pairwise

from belated import EventLog
from belated.cluster.base import HereCluster
from belated.data.cluster_logs import log_on_cluster


def cut(table, *cuts):
    ends = [0, *cuts, len(table)]
    return [table.slice(low, high - low) for low, high in pairwise(ends)]


def log_in_parts(tables, until=None, hash_columns=None, **options):
    return log_on_cluster(EventLog, HereCluster(tables), options, until, hash_columns)
