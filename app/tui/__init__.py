"""The terminal app. Nothing outside this package imports Textual."""
