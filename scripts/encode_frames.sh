#!/usr/bin/env bash
# Make a film of the frames that were drawn last, or else of imported ones.
# Options: --frames DIR --fps N --output FILE --overwrite
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib/data_paths.sh"

exec "$estragon" encode "$@"
