"""`python -m rlproof`."""

from rlproof.cli import main

if __name__ == "__main__":
    main(prog_name="rlproof")
