"""Runs a command and prints the most memory that its process had, in KiB, and its exit code.

A process that a large one starts counts the memory of that one as its own peak, so the tests start this small one.
"""

import resource
import subprocess
import sys

code = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, code)
