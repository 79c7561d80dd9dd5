# SPDX-License-Identifier: MIT
"""What goes over the wire for a new sandbox: the sidecar, compressed as it is uploaded. usage: check-size.py SIDECAR"""

import gzip
import sys

MAX = 1200000

with open(sys.argv[1], "rb") as f:
    data = f.read()
size = len(gzip.compress(data, 9))
print(f"{len(data)} bytes, {size} compressed; at most {MAX}")
sys.exit(size > MAX)
