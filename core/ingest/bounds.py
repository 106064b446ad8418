"""The refusal that goes for everything that is opened together.

Other refusals cost one file. Knows no bound itself: those are in `limits`.
"""

from core.base.errors import BadDocument


class BeyondBounds(BadDocument):
    """A bound of a whole archive or of a whole opening is passed: nothing of it is opened."""
