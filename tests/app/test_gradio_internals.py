"""What reaches into Gradio fits the Gradio that is asked for. What it does is tested where it is noticed."""

from __future__ import annotations

from importlib.metadata import version

from packaging.requirements import Requirement

from app import gradio_internals
from tests.app.conftest import ROOT


def test_gradio_is_the_version_whose_private_parts_are_known() -> None:
    (gradio,) = (
        Requirement(line)
        for line in (ROOT / "requirements.txt").read_text().splitlines()
        if line.startswith("gradio")
    )
    assert (str(gradio.specifier), gradio.extras) == ("==6.31.*", {"mcp"})
    assert gradio.specifier.contains(version("gradio"))
    assert "Gradio 6.31" in (gradio_internals.__doc__ or "")
