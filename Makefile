# Five words to work here: setup, check, test, test-kernel, bench; and `make run`, the tour.
# Each does all of its own set-up in .venv.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
EMU := $(BIN)/emu
EXPERIMENT ?= adacomp-mnist

.PHONY: run setup check test test-kernel bench clean

run: setup
	$(EMU) doctor
	@if [ "$$(id -u)" = 0 ]; then \
	  set -e; \
	  $(EMU) up topologies/wan-10.yaml; \
	  trap '$(EMU) down wan-10' EXIT; \
	  $(EMU) status wan-10; \
	  $(EMU) experiment $(EXPERIMENT) $(FLAGS) || [ $$? = 33 ]; \
	else \
	  echo "not root: no lab is made, the experiment runs on the fake runtime (for real nodes: sudo make run)"; \
	  $(EMU) experiment $(EXPERIMENT) $(FLAGS); \
	fi
	@echo "report: $$(ls -td runs/*/*/ | head -1)report.html"

# Compiled here, so that starting is quick also where PYTHONDONTWRITEBYTECODE is set.
setup: $(READY)
	@$(BIN)/python -m compileall -q emulator

$(READY): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || { echo "emu needs Python 3.10 or newer: set PYTHON=python3.11"; exit 1; }
	@$(PYTHON) -m venv $(VENV) || { echo "cannot make a virtual environment: install python3-venv"; exit 1; }
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[dev,kernel]'
	@touch $(READY)
	@echo "emu is in $(BIN): . $(BIN)/activate"

check: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

test: check
	$(BIN)/pytest $(PYTEST_FLAGS)

test-kernel: setup
	$(BIN)/python -m tests.kernel

bench: setup
	$(BIN)/python -m tests.bench

clean:
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
