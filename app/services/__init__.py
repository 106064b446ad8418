"""What pages, HTTP and MCP call: all that the app does, without Gradio."""
