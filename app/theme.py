"""The Gradio theme.

Its parts take the colours of assets/theme.css, which knows light and dark.
"""

import gradio as gr

_PARTS = {
    "var(--qx-bg)": "body_background_fill background_fill_secondary",
    "var(--qx-ink)": (
        "body_text_color checkbox_label_text_color checkbox_label_text_color_selected"
        " button_secondary_text_color button_cancel_text_color"
    ),
    "var(--qx-mut)": (
        "body_text_color_subdued block_label_text_color block_title_text_color block_info_text_color"
        " input_placeholder_color checkbox_border_color"
    ),
    "var(--qx-panel)": (
        "background_fill_primary input_background_fill input_background_fill_focus"
        " checkbox_background_color button_primary_text_color"
    ),
    "var(--qx-line)": (
        "border_color_primary input_border_color button_secondary_border_color button_cancel_border_color"
    ),
    "var(--qx-acc)": (
        "border_color_accent input_border_color_focus checkbox_background_color_selected slider_color"
        " button_primary_background_fill"
    ),
    "color-mix(in srgb, var(--qx-acc) 85%, var(--qx-ink))": "button_primary_background_fill_hover",
    "var(--qx-q0)": (
        "color_accent_soft checkbox_label_background_fill_selected button_secondary_background_fill_hover"
        " button_cancel_background_fill_hover"
    ),
    "transparent": (
        "block_background_fill block_label_background_fill panel_background_fill"
        " checkbox_label_background_fill button_secondary_background_fill button_cancel_background_fill"
    ),
}
"""By colour, what takes it in both modes: the CSS variables change."""


def build_theme() -> gr.themes.Base:
    """The theme of all pages."""
    colours = {name: colour for colour, names in _PARTS.items() for name in names.split()}
    theme = gr.themes.Base(
        primary_hue="blue",
        neutral_hue="gray",
        radius_size="md",
        font=["system-ui", "sans-serif"],
        font_mono=["ui-monospace", "monospace"],
    )
    return theme.set(
        **colours,
        **{f"{name}_dark": colour for name, colour in colours.items()},
        color_accent="var(--qx-acc)",
        block_border_width="0px",
        block_border_width_dark="0px",
        block_padding="0px",
        block_shadow="none",
        block_title_text_size="12.5px",
        block_title_text_weight="400",
        block_info_text_size="12.5px",
        input_border_width="1px",
        button_border_width="1px",
        button_border_width_dark="1px",
        button_large_radius="8px",
        button_large_text_size="14px",
        button_large_text_weight="500",
        button_large_padding="6px 14px",
        form_gap_width="0px",
    )
