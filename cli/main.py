"""The `lakepass` command."""


def main() -> None:
    """Placeholder."""
