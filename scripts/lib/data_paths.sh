# Where everything lies, for the scripts beside this folder, for estragon and for Godot alike.
# Sourced, not run:  . "$(dirname "${BASH_SOURCE[0]}")/lib/data_paths.sh"
# shellcheck shell=bash disable=SC2034

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)

# Logged matches, frames and what was brought along from older versions.
AI_DATA_ROOT=${AI_DATA_ROOT:-$root/data}
[[ $AI_DATA_ROOT == /* ]] || AI_DATA_ROOT=$PWD/$AI_DATA_ROOT # Godot changes folders
export AI_DATA_ROOT
trajectories=$AI_DATA_ROOT/trajectories
frames=$AI_DATA_ROOT/frames
imported=$AI_DATA_ROOT/_imported

charts=$root/charts
debug=$root/debug
trainer=$root/trainer
godot_project=$root/godot

# The estragon of the checkout, or else the one on the PATH.
estragon=$root/.venv/bin/estragon
[[ -x $estragon ]] || estragon=estragon

# Which Godot to run.
find_godot() {
	if [[ -n ${GODOT_BIN:-} ]]; then
		printf '%s\n' "$GODOT_BIN"
	else
		"$estragon" godot path
	fi
}
