"""The Gradio theme.

Its parts take the colours of assets/theme.css, which knows light and dark.
"""

import gradio as gr


def build_theme() -> gr.themes.Base:
    """One set of variables for both modes: the CSS variables behind them change."""
    shared = {
        "body_background_fill": "var(--qx-bg)",
        "body_text_color": "var(--qx-ink)",
        "body_text_color_subdued": "var(--qx-mut)",
        "background_fill_primary": "var(--qx-panel)",
        "background_fill_secondary": "var(--qx-bg)",
        "border_color_primary": "var(--qx-line)",
        "border_color_accent": "var(--qx-acc)",
        "color_accent_soft": "var(--qx-q0)",
        "block_background_fill": "transparent",
        "block_border_width": "0px",
        "block_label_background_fill": "transparent",
        "block_label_text_color": "var(--qx-mut)",
        "block_title_text_color": "var(--qx-mut)",
        "block_info_text_color": "var(--qx-mut)",
        "panel_background_fill": "transparent",
        "input_background_fill": "var(--qx-panel)",
        "input_background_fill_focus": "var(--qx-panel)",
        "input_border_color": "var(--qx-line)",
        "input_border_color_focus": "var(--qx-acc)",
        "input_placeholder_color": "var(--qx-mut)",
        "checkbox_background_color": "var(--qx-panel)",
        "checkbox_background_color_selected": "var(--qx-acc)",
        "checkbox_border_color": "var(--qx-mut)",
        "checkbox_label_background_fill": "transparent",
        "checkbox_label_background_fill_selected": "var(--qx-q0)",
        "checkbox_label_text_color": "var(--qx-ink)",
        "checkbox_label_text_color_selected": "var(--qx-ink)",
        "slider_color": "var(--qx-acc)",
        "button_primary_background_fill": "var(--qx-acc)",
        "button_primary_background_fill_hover": "color-mix(in srgb, var(--qx-acc) 85%, var(--qx-ink))",
        "button_primary_text_color": "var(--qx-panel)",
        "button_secondary_background_fill": "transparent",
        "button_secondary_background_fill_hover": "var(--qx-q0)",
        "button_secondary_border_color": "var(--qx-line)",
        "button_secondary_text_color": "var(--qx-ink)",
        "button_cancel_background_fill": "transparent",
        "button_cancel_background_fill_hover": "var(--qx-q0)",
        "button_cancel_border_color": "var(--qx-line)",
        "button_cancel_text_color": "var(--qx-ink)",
    }
    theme = gr.themes.Base(
        primary_hue="blue",
        neutral_hue="gray",
        radius_size="md",
        font=["system-ui", "sans-serif"],
        font_mono=["ui-monospace", "monospace"],
    )
    return theme.set(
        **shared,
        **{f"{name}_dark": value for name, value in shared.items() if not name.endswith("_width")},
        color_accent="var(--qx-acc)",
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
