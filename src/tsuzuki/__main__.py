"""`python -m tsuzuki` is `tsuzuki`."""

from tsuzuki.cli import main

if __name__ == "__main__":
    main()
