"""Makes `python -m larder` the same as `larder`."""

from larder.cli import main

main()
