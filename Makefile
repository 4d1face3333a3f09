# Everything a fresh checkout needs: Python 3.11 or newer, make, and a package index.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
DEMO   := $(VENV)/.demo
NODE   := clients/js/node_modules
JOBS   ?= 4
KERNELS ?= Haswell Nehalem Prescott
NAME   ?= --all

# uv installs faster. Without it, or with `make UV= demo`, pip does the same (uv does not read pip's settings).
UV      ?= $(shell command -v uv 2>/dev/null)
INSTALL := $(if $(UV),$(UV) pip install --python $(BIN)/python,$(BIN)/python -m pip install --disable-pip-version-check --no-compile)
INSTALL += --quiet --constraint constraints.txt

export OMP_NUM_THREADS ?= 1
# Containers often tell Python not to keep compiled modules. Every process would compile numpy and scipy again.
export PYTHONDONTWRITEBYTECODE :=
export NO_MKDOCS_2_WARNING := 1

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-busy test-kernels messages bundle house coverage check format-check lint types imports audit bench docs constraints hashes dist smoke format clean

help: ## list these commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(READY) ## make .venv with everything for development (done once)

$(BIN)/python:
	@command -v $(PYTHON) >/dev/null 2>&1 || { echo "error: $(PYTHON) not found; install Python 3.11 or newer, or: make PYTHON=/path/to/python3"; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "error: $$($(PYTHON) --version) is too old; priorveil needs Python 3.11 or newer: make PYTHON=python3.12"; exit 1; }
	$(if $(UV),$(UV) venv --seed --quiet --python $(PYTHON) $(VENV),$(PYTHON) -m venv $(VENV))
	@$(if $(UV),,$(BIN)/python -m pip uninstall --quiet --yes setuptools 2>/dev/null) # Python 3.11 installs an old one, which nothing here uses

$(READY): pyproject.toml constraints.txt | $(BIN)/python
	$(INSTALL) --editable '.[dev]'
	@touch $@ $(DEMO)

$(DEMO): pyproject.toml constraints.txt | $(BIN)/python
	$(INSTALL) --editable '.[plot,serve]'
	@touch $@

$(NODE): clients/js/package.json
	@command -v npm >/dev/null 2>&1 || { echo "error: npm not found; it comes with Node 20 or newer, and installs what checks JavaScript"; exit 1; }
	npm install --prefix clients/js --no-package-lock --no-audit --no-fund --silent
	@touch $@

demo: $(DEMO) ## go from prior to estimate on real data in a minute, with a curator
	@mkdir -p build
	$(BIN)/priorveil demo --plot build/demo.png

test: $(READY) ## run all the tests, doctests and documentation examples included
	@scripts/system-packages
	$(BIN)/python -m pytest -q -n $(JOBS) --dist loadfile --no-loadscope-reorder

test-busy: $(READY) ## run all the tests beside six busy processes: no verdict may depend on the speed of the machine
	@busy=; for i in 1 2 3 4 5 6; do yes > /dev/null & busy="$$busy $$!"; done; \
	trap "kill $$busy" EXIT; trap 'exit 130' INT TERM; \
	$(MAKE) test

test-kernels: $(READY) ## run the tests of numbers with three kernels of linear algebra (x86 only): none may depend on the processor
	@case $$(uname -m) in x86_64 | amd64) ;; *) echo "skipped: the kernels are for x86 processors"; exit 0 ;; esac; \
	for kernel in $(KERNELS); do \
		echo "OPENBLAS_CORETYPE=$$kernel"; \
		OPENBLAS_CORETYPE=$$kernel $(BIN)/python -m pytest -q -n $(JOBS) --dist loadfile --no-loadscope-reorder \
			--ignore tests/browser --ignore tests/curator --ignore tests/test_kernels.py || exit 1; \
	done

messages: $(READY) ## write the messages of errors again into tests/messages.txt, docs/mistakes.md and docs/surveys.md, after a change of words
	PYTHONPATH=tests $(BIN)/python tests/test_messages.py
	PYTHONPATH=tests $(BIN)/python tests/test_mistakes.py
	PYTHONPATH=tests $(BIN)/python tests/questions/test_page.py

bundle: $(READY) $(NODE) ## join the modules of the JavaScript client to the one file that is shipped, and write its types
	$(BIN)/python scripts/definitions.py
	$(BIN)/python scripts/bundle.py

coverage: $(READY) ## run all the tests and say which lines they miss (takes half as long again)
	@scripts/system-packages
	$(BIN)/python -m pytest -q -n $(JOBS) --dist loadfile --no-loadscope-reorder --cov --cov-report=term

check: $(READY) format-check lint imports ## everything: format, lint, imports, types, tests; the tests build the docs
	@$(MAKE) --no-print-directory --jobs=2 types test # the types take one core for as long as the tests need to start

format-check: $(READY) $(NODE)
	$(BIN)/ruff format --check .
	$(NODE)/.bin/biome format

lint: $(READY) $(NODE)
	$(BIN)/ruff check .
	$(NODE)/.bin/biome lint --error-on-warnings

types: $(READY) $(NODE)
	$(BIN)/mypy
	$(NODE)/.bin/tsc --project clients/js
	$(NODE)/.bin/tsc --project clients/js/tsconfig.pages.json
	$(NODE)/.bin/tsc --project clients/js/tsconfig.tests.json

imports: $(READY)
	$(BIN)/lint-imports

audit: $(READY) ## look up known vulnerabilities of all dependencies (needs PyPI; not part of check)
	$(BIN)/python scripts/audit.py

house: $(READY) ## report the size of the source, and the modules that everyday jobs pass through
	$(BIN)/python scripts/house.py

bench: $(READY) ## measure the claims of speed and accuracy (one of them: make bench NAME=design)
	$(BIN)/priorveil bench $(NAME)

docs: $(READY) ## build the documentation in site/
	$(BIN)/python scripts/commands.py
	$(BIN)/python scripts/settings.py
	$(BIN)/mkdocs build --strict --quiet

constraints: $(READY) ## write the versions in .venv into constraints.txt, after the tests passed with them
	$(BIN)/python scripts/constraints.py

hashes: $(READY) ## write deploy/requirements.txt, what a curator installs, with hashes (needs a package index)
	$(BIN)/python scripts/hashes.py

dist: $(READY) ## build the wheel and the sdist in dist/; the same commit gives the same bytes
	rm -rf dist
	SOURCE_DATE_EPOCH=$${SOURCE_DATE_EPOCH:-$$(git log -1 --format=%ct)} $(BIN)/python -m hatchling build -d dist

smoke: dist ## install both into fresh environments and use them (another Python: make smoke PYTHON=python3.13)
	$(PYTHON) scripts/smoke.py dist/*

format: $(READY) $(NODE) ## format the code and fix what the linter can
	$(BIN)/ruff check --fix --quiet . || true
	$(BIN)/ruff format .
	$(NODE)/.bin/biome lint --write || true
	$(NODE)/.bin/biome format --write

clean: ## remove everything that make has made, .venv included
	rm -rf $(VENV) $(NODE) site build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache .coverage .coverage.*
	find src tests benchmarks scripts -name __pycache__ -type d -prune -exec rm -rf {} +
