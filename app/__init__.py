"""The Gradio app. No retrieval logic; that is `core`."""
