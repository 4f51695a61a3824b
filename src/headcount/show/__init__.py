"""What a person looks at: plots and self-contained HTML pages."""
