#!/usr/bin/env bash
# Make a film of the frames in data/frames, else of imported ones or those in Godot's user folder.
# Options: --frames DIR --fps N --output FILE --overwrite
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib/data_paths.sh"

exec "$estragon" encode "$@"
