"""`python -m headcount` is `headcount`."""

from headcount.cli import main

if __name__ == "__main__":
    main()
