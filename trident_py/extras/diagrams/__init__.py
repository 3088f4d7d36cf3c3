"""Pictures of a topology: Mermaid, DOT, SVG."""
