"""How good a method is on a log's own past, and what to use: backtest, choice of settings, intervals, recommendation.

May import models, methods and everything below them; its results are plain data, which reports draw.
"""
