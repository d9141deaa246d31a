"""Pure: from values to text, Markdown, CSV, JSON and YAML; each kind of value is written in one place."""
