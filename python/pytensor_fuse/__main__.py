"""The command ``pytensor-fuse`` as ``python -m pytensor_fuse``."""

import sys

from pytensor_fuse._cli.runner import main

if __name__ == "__main__":
    main(sys.argv[1:])
