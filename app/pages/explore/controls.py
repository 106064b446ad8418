"""The settings of a run: their components, values and ranges."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import gradio as gr

from core.base.config import EpisodeConfig
from core.base.errors import BadRequest
from core.encode.checkpoint import CheckpointSpec

MAX_BUDGET = 12
"""Right end of the budget slider: more chunks than encoders of this size can hold in a state."""


@dataclass
class Controls:
    """The inputs that make an EpisodeConfig, in the order in which handlers get their values."""

    query: gr.Textbox
    budget: gr.Slider
    temperature: gr.Slider
    stops: gr.Checkbox
    threshold: gr.Slider
    seed: gr.Number
    beam: gr.Slider
    positions: gr.Checkbox
    top_k: gr.Number
    reviews: gr.Checkbox
    review: gr.Slider

    def list(self) -> list[Any]:
        """For `inputs=`."""
        return list(vars(self).values())

    def showing(self, spec: CheckpointSpec, config: EpisodeConfig) -> dict[Any, Any]:
        """An agent's ranges, and a run's settings in them."""
        lo, hi = spec.q_range or (-1.0, 1.0)
        usual = spec.stop_threshold if spec.stop_threshold is not None else round((lo + hi) / 2, 2)
        threshold = usual if config.stop_threshold is None else config.stop_threshold
        review = next(
            (value for value in (config.review_threshold, spec.review_threshold) if value is not None),
            round(threshold / 2, 2),
        )

        def of_q(value: float, is_set: bool) -> gr.Slider:
            return gr.Slider(lo, hi, value=value, step=round((hi - lo) / 200, 4), interactive=is_set)

        return {
            # a run from elsewhere may have had more than the slider offers
            self.budget: min(config.step_budget, MAX_BUDGET),
            self.temperature: gr.Slider(
                0,
                round(10 * spec.shown_temperature, 3),
                value=config.temperature,
                step=spec.shown_temperature / 20,
            ),
            self.threshold: of_q(threshold, config.stop_threshold is not None),
            self.stops: config.stop_threshold is not None,
            self.seed: config.seed,
            self.beam: config.beam_width,
            self.top_k: config.top_k_actions,
            self.positions: gr.Checkbox(config.use_positions, interactive=spec.position_kind != "none"),
            self.reviews: config.review_threshold is not None,
            self.review: of_q(review, config.review_threshold is not None),
        }


def read_controls(values: tuple[Any, ...]) -> tuple[str, EpisodeConfig]:
    """(query, config) out of the controls' values. Raises BadRequest with the sentence to show."""
    query, budget, temperature, stops, threshold, seed, beam, positions, top_k, reviews, review = values
    if None in (budget, temperature, threshold, seed, beam, review):
        raise BadRequest(
            "a setting is empty; give budget, temperature, threshold, seed, beam and review a number each"
        )
    return str(query or ""), EpisodeConfig(
        step_budget=int(budget),
        temperature=float(temperature),
        stop_threshold=float(threshold) if stops else None,
        review_threshold=float(review) if reviews else None,
        seed=int(seed),
        beam_width=int(beam),
        top_k_actions=None if top_k is None else int(top_k),
        use_positions=bool(positions),
    )


def control_values(query: str, config: EpisodeConfig) -> tuple[Any, ...]:
    """What the controls hold for it; `read_controls` reads it back."""
    threshold, review = config.stop_threshold, config.review_threshold
    return (
        *(query, config.step_budget, config.temperature, threshold is not None, threshold or 0.0),
        *(config.seed, config.beam_width, config.use_positions, config.top_k_actions),
        *(review is not None, review or 0.0),
    )
