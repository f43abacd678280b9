"""Reports: full and concise text, JSON, HTML."""
