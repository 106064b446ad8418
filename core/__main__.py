"""`python -m core`, and `qrag` where the project is installed."""

import sys

from core.cli import main


def run() -> None:
    """Ends the process with the command's exit status."""
    sys.exit(main(sys.argv[1:]))


if __name__ == "__main__":
    run()
