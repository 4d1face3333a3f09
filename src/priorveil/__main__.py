"""`python -m priorveil`: the command line."""

from priorveil.cli import main

if __name__ == "__main__":
    main()
