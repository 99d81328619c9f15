#!/usr/bin/env bash
# Run the game's own tests in Godot. Arguments are passed on: --only=SUBSTRING --json=FILE
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib/data_paths.sh"
godot=$(find_godot)

arguments=()
for argument in "$@"; do
	# Godot changes to the project's folder.
	[[ $argument == --json=[!/]* ]] && argument=--json=$PWD/${argument#--json=}
	arguments+=("$argument")
done

if ! said=$("$godot" --headless --path "$godot_project" --import 2>&1); then
	printf '%s\n' "$said" "run_godot_tests: the project does not import" >&2
	exit 1
fi
exec "$godot" --headless --path "$godot_project" --fixed-fps 60 -s res://tests/run_tests.gd \
	-- ${arguments[@]+"${arguments[@]}"}
