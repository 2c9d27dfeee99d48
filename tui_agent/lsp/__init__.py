"""Language servers: what they find after an edit, and their answers to questions about code."""
