"""The few errors that a person can cause, each with one sentence: the value, the bound, the remedy.

Callers at the edge (command line, app, HTTP) catch `UserError` and show its text; anything else is a bug and keeps its traceback.
"""


class UserError(ValueError):
    """Something the person can put right; `str(error)` is the sentence to show."""


class BadDocument(UserError):
    """A document that can't be read: empty, binary, too large, without text."""


class BadCheckpoint(UserError):
    """A checkpoint that is missing, incomplete, unsafe or of an unsupported kind."""


class BadRequest(UserError):
    """Arguments of a run or a command that don't fit together."""


class LogError(UserError):
    """The experiment log can't be opened, read or written."""


class RunNotFound(LogError):
    """No run of that id that this visitor may see."""


class Cancelled(Exception):
    """Raised inside long work when its caller asked it to stop; what is finished has been kept."""
