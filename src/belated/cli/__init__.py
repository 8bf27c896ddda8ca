"""Room."""

from belated.cli.commands import main as main
