"""Figures of core.views.figures as values of a plot."""

from __future__ import annotations

import logging
from collections.abc import Callable

import plotly.graph_objects as go
from gradio.components.plot import PlotData
from plotly.io import to_json

from core.views.figures import Drawing


def drawn(draw: Callable[[], go.Figure | Drawing]) -> PlotData | None:
    """The figure, or none: one that fails must not take the page along. The server's log says why."""
    try:
        return PlotData(type="plotly", plot=to_json(draw(), validate=False))
    except Exception:
        logging.getLogger(__name__).exception("a figure could not be drawn")
        return None
