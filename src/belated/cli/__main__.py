"""``python -m belated.cli`` is the command ``belated``."""

from belated.cli import main

if __name__ == "__main__":
    main(prog_name="belated")
