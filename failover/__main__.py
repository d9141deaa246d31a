"""Runs the command line: ``python -m failover``."""

from failover.cli import main

if __name__ == "__main__":
    main()
