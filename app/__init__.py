"""The Gradio app.

Tabs, components, sessions, and what turns a trace into text and rows. No retrieval logic; that is `core`.
"""
