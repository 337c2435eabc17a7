"""Lets `python -m tertulia` do what `tertulia` does."""

from tertulia.cli import main

main()
