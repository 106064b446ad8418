"""All that the app does, without Gradio: for pages, HTTP, MCP."""
