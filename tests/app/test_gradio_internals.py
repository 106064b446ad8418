"""What reaches into Gradio fits the Gradio that is asked for. What it does is tested where it is noticed."""

from __future__ import annotations

from importlib.metadata import version

import gradio as gr
from packaging.requirements import Requirement

from app import gradio_internals
from tests.app.conftest import ROOT


def test_a_slider_takes_a_value_beyond_its_ends_as_its_end() -> None:
    gradio_internals.keep_sliders_in_bounds()
    slider = gr.Slider(0, 1.15, step=0.05)
    assert [slider.preprocess(value) for value in (2.5, -1, 0.5)] == [1.15, 0, 0.5]


def test_gradio_is_the_version_whose_private_parts_are_known() -> None:
    (gradio,) = (
        Requirement(line)
        for line in (ROOT / "requirements.txt").read_text().splitlines()
        if line.startswith("gradio")
    )
    assert (str(gradio.specifier), gradio.extras) == ("==6.31.*", {"mcp"})
    assert gradio.specifier.contains(version("gradio"))
    assert "Gradio 6.31" in (gradio_internals.__doc__ or "")
