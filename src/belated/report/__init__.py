"""The report: a summary (plain data) becomes charts, and charts become one page of HTML that needs nothing else."""

from belated.report.page import render

__all__ = ["render"]
