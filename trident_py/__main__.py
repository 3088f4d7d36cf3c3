"""python -m trident_py: the command line (cli.py)."""

from .cli import main

main()
