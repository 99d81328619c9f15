#!/usr/bin/env bash
# Train in real Godot: train.sh live-seeker|live-hider|self-play [options of estragon live].
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib/data_paths.sh"

case ${1:-} in
live-seeker) mode=seeker ;;
live-hider) mode=hider ;;
self-play) mode=self-play ;;
*)
	echo "train: expected live-seeker, live-hider or self-play, got '${1:-}'" >&2
	exit 2
	;;
esac
if ! command -v "$estragon" >/dev/null; then
	make -s -C "$root" setup
	estragon=$root/.venv/bin/estragon
fi
exec "$estragon" live "$mode" --output "$root" "${@:2}"
