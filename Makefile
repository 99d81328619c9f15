# `make` alone lists the targets.
PYTHON ?= python3
EXTRAS ?= all
ARGS ?=
REASON ?=

BIN := .venv/bin
BASELINE := rl_training/baselines/vr_locomotion_baseline
# pip installs uncompiled modules (scripts/setup_venv.py): without this, where the environment forbids
# bytecode, every process that a test starts would compile torch again.
export PYTHONDONTWRITEBYTECODE :=
GDSCRIPT = find godot src tests -name '*.gd' -not -path '*/.godot/*'

.DEFAULT_GOAL := help
.PHONY: help setup train test quick check format bench prove policies baseline wheel addon clean

help: ## Show this help
	@echo "Estragon: train, watch, test and ship game-playing agents for Godot 4."
	@echo
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo
	@echo "ARGS is passed on:       make train ARGS='--seed 1'"
	@echo "                         make test ARGS='tests/tag -k spawn'"
	@echo "Another Python:          make setup PYTHON=python3.12   (3.11 to 3.13)"
	@echo "Fewer packages:          make setup EXTRAS=train"

setup: ## Make .venv with everything in it; instant when nothing changed
	@$(PYTHON) scripts/setup_venv.py --extras '$(EXTRAS)'

train: setup ## Train a seeker and a hider by self-play; minutes
	$(BIN)/estragon train tag $(ARGS)

test: setup ## What CI runs: every test except the long proofs
	$(BIN)/python -m pytest -n 3 --dist loadfile \
		--no-loadscope-reorder $(ARGS)

quick: setup ## The fast tests only, as measured by earlier runs; about a minute
	$(BIN)/python -m pytest -n 2 --dist loadfile --quick $(ARGS)

# One file alone first: gdlint fails where two of its processes make its cache at the same time.
check: setup ## Lint, formatting and types, of Python and GDScript
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	@if [ -n "`$(GDSCRIPT)`" ]; then \
		echo "$(BIN)/gdlint, $(BIN)/gdformat --check"; \
		$(GDSCRIPT) | head -n 1 | xargs $(BIN)/gdlint >/dev/null && \
		$(GDSCRIPT) -print0 | xargs -0 -P 2 -n 60 $(BIN)/gdlint && \
		$(GDSCRIPT) -print0 | xargs -0 -P 2 -n 60 $(BIN)/gdformat --check; \
	fi

format: setup ## Format the code, and fix what the linter can fix
	$(BIN)/ruff check --fix-only
	$(BIN)/ruff format
	@if [ -n "`$(GDSCRIPT)`" ]; then $(GDSCRIPT) -print0 | xargs -0 $(BIN)/gdformat; fi

bench: setup ## Measure speed: a table, and the same as JSON
	$(BIN)/estragon bench $(ARGS)

prove: setup ## The long runs behind the claims; hours, resumable
	$(BIN)/python -m pytest -m prove -n 0 $(ARGS)

policies: setup ## Retrain the policies that come with the game; minutes
	$(BIN)/estragon train tag --seed 1 --no-film --probe-steps 0 --output build/policies
	$(BIN)/estragon export tag --run build/policies --levels --out godot/tag/policies

baseline: setup ## Retrain the baseline of VR locomotion: REASON='…'; minutes
	$(BIN)/estragon train scene --experiment_name vr_locomotion_baseline
	cp rl_training/models/vr_locomotion_baseline_final.onnx $(BASELINE).onnx
	$(BIN)/estragon judge evaluate --model $(BASELINE).onnx --preset vr_locomotion --output build/vr_locomotion.json
	$(BIN)/estragon judge regress --current build/vr_locomotion.json --baseline $(BASELINE).json --update --reason '$(REASON)'

wheel: setup ## Build the wheel into dist/
	$(BIN)/python -m build --wheel --no-isolation

addon: ## Pack the Godot addon into dist/godot_rl_agents.zip
	@$(PYTHON) scripts/build_addon.py $(ARGS)

clean: ## Remove build output and caches; keep .venv and results
	rm -rf build dist .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find . -path ./.venv -prune -o -name __pycache__ -type d -prune -exec rm -rf {} +
