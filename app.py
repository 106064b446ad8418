"""Starts the app: reads the flags, builds the pages, serves them. `python app.py --help` lists the flags."""

import gc
import os
import sys

from app.services.settings import Settings
from core.base.errors import UserError


def main() -> None:
    os.umask(0o077)  # what it writes holds people's texts and questions
    gc.disable()  # nothing of what is imported ever goes; `app.start` turns it on again
    try:
        settings = Settings.from_args(sys.argv[1:])
        from app.start import start  # takes seconds: a wrong flag is told at once

        start(settings)
    except UserError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:  # before it was up
        sys.exit(130)


if __name__ == "__main__":
    main()
