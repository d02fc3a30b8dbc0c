"""`python -m fedscape`."""

from fedscape.command import main

if __name__ == "__main__":
    main()
