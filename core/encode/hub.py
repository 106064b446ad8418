"""Fetching repositories of the Hugging Face hub."""

from __future__ import annotations

from pathlib import Path

from core.base.errors import BadCheckpoint


def fetch(repository: str, patterns: list[str], remedy: str) -> Path:
    """Local folder with the matching files of a hub repository (downloaded once). Raises BadCheckpoint."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    try:
        return Path(snapshot_download(repository, allow_patterns=patterns))
    except (HfHubHTTPError, LocalEntryNotFoundError, HFValidationError, OSError) as error:
        raise BadCheckpoint(
            f"{repository!r} is no local folder and the hub gave none ({type(error).__name__}); {remedy}"
        ) from error
