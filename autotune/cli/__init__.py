"""The command line: Typer commands and the rich console."""
