# Every check that CI runs is a target here; `make help` lists them.
#
# PYTHON chooses the interpreter: a version (PYTHON=3.11) or a path. By default it is the newest
# supported one. Each version has a virtual environment of its own, so that changing PYTHON never
# mixes two; the extension is built for the stable ABI and serves them all.

PYTHON ?=
PYTEST_ARGS ?=
DEMO_ARGS ?=
BENCH_ARGS ?=
# How long test-deep runs each target of fuzzing.
FUZZ_MINUTES ?= 20
# Options of cargo-mutants in mutants: --shard 1/20 tests a part, --file a module.
MUTANTS_ARGS ?=
# A checkout of PyTensor, of the installed version, and which of its tests test-upstream runs.
PYTENSOR_SOURCE ?=
UPSTREAM_TESTS ?= tests/link/numba
# What pip says: a bar for each download on a terminal, and nothing of what is there already.
PIP_SHOWS := $(if $(CI),--quiet,--no-warn-script-location)
# More workers than two gain little: the compile lock of PyTensor serialises the C compiler.
WORKERS ?= 2

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

# rustup's own directory, which a shell opened before its installation does not have on PATH.
export PATH := $(PATH):$(HOME)/.cargo/bin
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# maturin refuses to choose between an active conda environment and ours.
unexport CONDA_PREFIX
# The programs that tests start would compile the whole package anew, each of them.
unexport PYTHONDONTWRITEBYTECODE

# `help` and `clean` need neither Python nor cargo.
ifneq ($(filter-out help clean,$(MAKECMDGOALS)),)
  FOUND := $(shell scripts/find-python '$(PYTHON)' 2>&1)
  ifeq ($(firstword $(FOUND)),error:)
    $(error $(wordlist 2,$(words $(FOUND)),$(FOUND)))
  endif
  ifeq ($(shell command -v cargo 2>/dev/null),)
    $(error cargo was not found; install Rust with rustup (https://rustup.rs) or your package manager)
  endif
  VERSION := $(firstword $(FOUND))
  BASE_PYTHON := $(wordlist 2,$(words $(FOUND)),$(FOUND))
endif

VENV := .venv-$(VERSION)
export VIRTUAL_ENV := $(CURDIR)/$(VENV)
PY := $(VENV)/bin/python
# One interpreter for every cargo command, or each would rebuild PyO3 for the one it finds.
export PYO3_PYTHON := $(CURDIR)/$(PY)

EXTENSION := python/pytensor_fuse/_core.abi3.so
RUST_SOURCES := Cargo.toml Cargo.lock $(shell find rust -name '*.rs' -o -name Cargo.toml)

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: build
build: $(VENV)/.built ## Create the virtual environment and build the extension into it

.PHONY: demo
demo: build pymc ## Compile real graphs with and without the package and print a table
	$(PY) -m benchmarks.demo $(DEMO_ARGS)

.PHONY: check
check: lint ## Lint, and run the fast tests, in minutes: before each commit
	HYPOTHESIS_PROFILE=check $(PY) -m pytest --quiet -n auto --dist worksteal --benchmark-disable \
	    -m "not exhaustive and not slow" --durations 5 --durations-min 3 $(PYTEST_ARGS)

.PHONY: test
test: test-rust test-python ## Run the Rust and Python tests, doctests and README examples

.PHONY: test-rust
test-rust: build
	@set -ex; if cargo nextest --version >/dev/null 2>&1; then \
	    cargo nextest run --workspace --no-tests=pass; \
	    cargo test --workspace --doc; \
	else \
	    cargo test --workspace; \
	fi

.PHONY: test-python
test-python: build pymc ## Run the Python tests, doctests and README examples
	$(PY) -m pytest -n $(WORKERS) --dist worksteal --benchmark-disable $(PYTEST_ARGS)

.PHONY: test-exhaustive
test-exhaustive: build pymc ## Run all Python tests, with more random graphs (an hour or two)
	HYPOTHESIS_PROFILE=nightly $(PY) -m pytest -n $(WORKERS) --dist worksteal --benchmark-disable \
	    -m "" $(PYTEST_ARGS)

.PHONY: test-deep
test-deep: build pymc ## Run all tests with many more random graphs (hours)
	FUZZ_MINUTES=$(FUZZ_MINUTES) cargo test --release -p pytensor-fuse-core -- --ignored
	HYPOTHESIS_PROFILE=deep $(PY) -m pytest -n $(WORKERS) --benchmark-disable --timeout 7200 \
	    -m "" $(PYTEST_ARGS)

.PHONY: mutants
mutants: build ## Change the code in small ways, and list the changes that no test notices (hours)
	cargo mutants --package pytensor-fuse-core --output target $(MUTANTS_ARGS) || \
	    case $$? in 2|3) ;; *) exit 1 ;; esac # 2: some survived; 3: some timed out
	@$(PY) -m pip install $(PIP_SHOWS) --group mutants
	rm -rf target/mutmut && mkdir -p target/mutmut
	cp -R python target/mutmut/src
	cp -R benchmarks tests pyproject.toml target/mutmut
	cd target/mutmut && "$(CURDIR)/$(PY)" -m mutmut run && "$(CURDIR)/$(PY)" -m mutmut results

.PHONY: test-upstream
test-upstream: build ## Run PyTensor's own tests, those of PYTENSOR_SOURCE, and list new failures
	$(PY) scripts/upstream/compare.py "$(PYTENSOR_SOURCE)" $(UPSTREAM_TESTS) -n $(WORKERS) $(PYTEST_ARGS)

.PHONY: lint
lint: build ## Check format, lints, types, stubs, layers and docs
	$(PY) -m ruff format --check .
	$(PY) -m ruff check .
	$(PY) -m mypy
	$(PY) -m mypy.stubtest pytensor_fuse._core
	$(VENV)/bin/lint-imports --no-logo --no-cache
	$(VENV)/bin/zizmor --offline --quiet .github
	@if test -x $(VENV)/bin/oxlint; then set -x; $(VENV)/bin/oxlint --deny-warnings python; \
	    else echo "note: there is no oxlint for this machine; the scripts of pages are not checked"; fi
	@cargo fmt --version >/dev/null 2>&1 && cargo clippy --version >/dev/null 2>&1 || \
	    { echo "rustfmt or clippy is missing: rustup component add rustfmt clippy"; exit 1; }
	cargo fmt --all --check
	cargo clippy --workspace --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --document-private-items

.PHONY: format
format: $(VENV)/.tools ## Format the sources and apply safe lint fixes
	$(PY) -m ruff format .
	$(PY) -m ruff check --fix .
	cargo fmt --all

.PHONY: docs
docs: build $(VENV)/.docs ## Build the site (make test runs its examples) and look at it in a browser
	$(PY) -m sphinx --builder html --nitpicky --fail-on-warning --keep-going --fresh-env --quiet \
	    docs docs/_build/html
	$(PY) -m pytest --quiet tests/test_site.py
	@echo "the site: $(CURDIR)/docs/_build/html/index.html"

.PHONY: pictures
pictures: build pymc ## Draw the pictures of README and the guides again
	$(PY) docs/pictures/plan.py
	$(PY) docs/pictures/model.py

.PHONY: bench
bench: build ## Run the benchmarks, stock and ours interleaved
	$(PY) -m pytest benchmarks -p no:xdist --timeout 3600 $(BENCH_ARGS)

.PHONY: wheel
wheel: $(VENV)/.tools ## Build the wheel and sdist into dist/ and test the installed wheel
	rm -rf dist
	$(VENV)/bin/maturin build --release --locked --sdist --out dist
	$(PY) -m abi3audit --strict --summary dist/*.whl
	scripts/smoke-wheel "$(BASE_PYTHON)" dist/*.whl

.PHONY: dist
dist: wheel $(VENV)/.release ## Build the wheel and sdist, and check what an index would ask of them
	$(PY) -m twine check --strict dist/*
	scripts/check-sdist $(PY) dist/*.tar.gz

.PHONY: clean
clean: ## Remove everything that the other targets made
	rm -rf .venv-* target dist $(EXTENSION) .benchmarks .hypothesis .mypy_cache .pytest_cache .ruff_cache
	rm -rf docs/_build docs/api
	find python tests benchmarks -name __pycache__ -prune -exec rm -rf {} + 2>/dev/null || true

# Each step says what it does and what it waits for; pip and cargo then show how far they are.
$(VENV)/.tools: pyproject.toml
	@echo "==> Step 1 of 3: a virtual environment in $(VENV), and the tools (a minute)"
	@test -x $(PY) || "$(BASE_PYTHON)" -m venv $(VENV)
	@$(PY) -m pip install $(PIP_SHOWS) --upgrade "pip>=25.1"
	@$(PY) -m pip install $(PIP_SHOWS) --upgrade --group dev
	@touch $@

$(VENV)/.docs: pyproject.toml $(VENV)/.tools
	@echo "==> Sphinx, for the site"
	@$(PY) -m pip install $(PIP_SHOWS) --upgrade --group docs
	@touch $@

$(VENV)/.release: pyproject.toml $(VENV)/.tools
	@$(PY) -m pip install $(PIP_SHOWS) --upgrade --group release
	@touch $@

# The extension may be gone although the stamp is not: another tool may have cleaned the tree.
ifeq ($(wildcard $(EXTENSION)),)
.PHONY: $(VENV)/.built
endif
$(VENV)/.built: $(VENV)/.tools $(RUST_SOURCES)
	@echo "==> Step 2 of 3: PyTensor, and the extension in Rust (minutes the first time)"
	@$(VENV)/bin/maturin develop --release --locked
	@touch $@

# PyMC has no release for Python 3.11 that takes PyTensor 3; nothing but its own examples and tests
# needs it, and those of nutpie, which comes along. The installed PyTensor is named so that pip does not exchange it for another.
.PHONY: pymc
pymc: $(VENV)/.built
	@test -e $(VENV)/.pymc || ! $(PY) -c 'import sys; sys.exit(sys.version_info < (3, 12))' || { \
	    echo "==> Step 3 of 3: PyMC and nutpie (a minute)"; \
	    if $(PY) -m pip install $(PIP_SHOWS) --group pymc \
	        "$$($(PY) -m pip freeze | grep -iE '^pytensor( @ |==)')"; \
	    then touch $(VENV)/.pymc; \
	    else echo "note: PyMC could not be installed; going on without it"; fi; }
