# Everything a newcomer types. Each target sets up what it needs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
PACKAGES := reader broker spark_conf cli
PYTEST := $(BIN)/python -m pytest

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-fast lint format bench fixtures soak docs clean

help:  ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

setup: $(READY) build/links  ## the virtual environment with everything in it

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit("lakepass needs Python 3.11 or newer, this is " + sys.version) if sys.version_info < (3, 11) else None'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip -c constraints.txt
	$(BIN)/python -m pip install -qq -c constraints.txt -e '.[dev]'
	touch $@

# mypy and editors follow links, not the import hook of an editable install.
build/links:
	mkdir -p $@/lakepass
	for package in $(PACKAGES); do ln -sfn ../../../$$package $@/lakepass/$$package; done

# Tests that need Spark are one group, so that a run has one session; every store is started once, by the tests.
PYTEST_RUN := $(PYTEST) -n 2 --dist loadgroup --durations=10 --timeout=600

demo: setup  ## the whole product on this machine, with no cloud account (ARGS=--keep leaves it running)
	$(BIN)/lakepass demo $(ARGS)

test: setup  ## every test, on two cores (ARGS="-k word" to choose)
	$(PYTEST_RUN) $(ARGS)

test-fast: setup  ## the inner loop: no Spark, no Node, nothing slow
	$(PYTEST_RUN) -m 'not spark and not node and not slow and not terraform' $(ARGS)

lint: setup  ## ruff (lint, format) and strict mypy
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy -p lakepass
	$(BIN)/mypy tests bench examples

format: setup  ## format and fix what can be fixed
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

fixtures: setup  ## write the fixture tables again with Spark (needs Java 17)
	$(BIN)/python -m tests.tables.generator $(TABLES)

BENCHES ?= log_replay scans client server signing vending spark

bench: setup  ## ours beside its peers, measured on this machine (BENCHES="scans client" to choose; takes long)
	for bench in $(BENCHES); do \
	  arguments=$$(test $$bench = server && echo --own); \
	  echo "== $$bench"; $(BIN)/python -m bench.$$bench $$arguments || exit 1; \
	done

docs: setup  ## the site in site/, with every link checked
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

clean:  ## remove everything the other targets made
	rm -rf $(VENV) .tools build dist site *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis

soak: setup  ## 100,000 hostile requests to a running broker: none may give a 500
	$(BIN)/python -m tests.broker.hostile --requests 100000
