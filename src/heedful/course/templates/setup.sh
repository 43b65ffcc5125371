#!/usr/bin/env bash
# Gradescope runs this once, as root, when the autograder is built. It needs the internet for torch and other packages.
set -euo pipefail
root=${AUTOGRADER:-/autograder}
apt-get update
apt-get install -y --no-install-recommends python3 python3-venv util-linux
python3 -c 'import sys; sys.exit("Python 3.11 or newer is needed: choose a newer base image" if sys.version_info < (3, 11) else 0)'
python3 -m venv /opt/heedful
/opt/heedful/bin/python -m pip install --no-cache-dir --extra-index-url https://download.pytorch.org/whl/cpu "$root"/source/heedful-*.whl
# Submissions run as a user without rights, who may not read the hidden checks.
chmod -R go-rwx "$root/source"
