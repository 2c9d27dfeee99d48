"""Files that are not plain text: images, PDF files and notebooks."""
