# `make demo` and `make test` do all the set-up on a machine with python3 (3.11 or newer) and make.
PYTHON ?= python3
BIN := .venv/bin
# The lock of torch's CPU build where pip finds one (on macOS the only one), else that of CUDA's; or: make setup LOCK=FILE
CPU = [ "$$(uname)" = Darwin ] || $(BIN)/python -m pip index versions torch 2>&1 | grep -qF "$$(sed -n s/^torch==//p constraints.txt)+cpu"
LOCK ?= $$(if $(CPU); then echo requirements-cpu.lock; else echo requirements-cuda.lock; fi)

.PHONY: setup demo test test-all soak fuzz lint clean

setup: .venv/.installed

.venv/.installed: pyproject.toml requirements-cpu.lock requirements-cuda.lock
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "vfgnn needs Python 3.11 or newer; set PYTHON=...")'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --requirement "$(LOCK)"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

demo: setup
	$(BIN)/vfgnn demo

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

test: lint  # in two workers, a file at a time: its tests share the federation that they train; the long files come first
	$(BIN)/pytest --numprocesses 2 --dist loadfile --no-loadscope-reorder

test-all: test  # then the slow ones, one after another: some of them measure time
	$(BIN)/pytest -m slow

soak: setup  # VFGNN_SOAK minutes of load on a federation that serves, then 200 kills of one that trains: under two hours
	VFGNN_SOAK=60 $(BIN)/pytest tests/e2e/test_serve_soak.py
	VFGNN_SOAK=60 $(BIN)/pytest tests/e2e/test_kills.py -k two_hundred

FUZZ_S ?= 120
FUZZ_JSON ?=

fuzz: setup  # FUZZ_S seconds of mutated frames, hellos, connections, files and records; what failed goes to tests/corpus
	$(BIN)/python -m tests.fuzz run --seconds $(FUZZ_S) $(if $(FUZZ_JSON),--json $(FUZZ_JSON))

clean:
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis
