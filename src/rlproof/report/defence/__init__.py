"""The defence as text, Markdown, JSON and HTML."""
