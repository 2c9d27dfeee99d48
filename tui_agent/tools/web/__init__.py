"""Pages of the web: connections to public addresses only, downloads with limits, and HTML as Markdown."""
