# `make run` and `make test` need Linux, Python 3.11+, git and a package registry. Nothing else, no root.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

PYTHON ?= python3
# Keep compiled modules; otherwise every process started by a test would compile everything again.
unexport PYTHONDONTWRITEBYTECODE
UV := .tools/bin/uv
BIN := .venv/bin
# Exactly one of these stamps exists: for running, or for developing, which includes running.
RUNTIME := .venv/.runtime
DEV := .venv/.dev

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 18

setup: $(DEV) ## install uv and create .venv from the hash-pinned lock

# A .venv for developing is kept as one.
runtime: $(if $(wildcard $(DEV)),$(DEV),$(RUNTIME))

# One `make` at a time: `make test` may be started while `make run` still installs.
ALONE = mkdir -p .cache && exec 9>.cache/setup.lock && flock 9

$(UV): requirements/uv.txt
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "Tsuzuki needs Python 3.11 or newer; set PYTHON=/path/to/python3.11")'
	@$(ALONE); if [ $(UV) -nt $< ]; then exit 0; fi; \
	echo "Installing uv into .tools"; \
	rm -rf .tools; $(PYTHON) -m venv .tools; \
	.tools/bin/pip install --quiet --disable-pip-version-check --require-hashes -r $<; \
	touch $(UV)

# $(call install,LOCKS): makes .venv hold exactly the packages in these locks. A demo running from it is not disturbed,
# because only packages are replaced. Without a stamp the last installation was interrupted: .venv is created anew.
define install
	echo "Installing $$(cat $(1) | grep -oE '^[a-z0-9.-]+==' | sort -u | wc -l) packages into .venv"; \
	if { [ -e $(RUNTIME) ] || [ -e $(DEV) ]; } && $(BIN)/python -c ''; then rm -f $(RUNTIME) $(DEV); \
	else $(UV) venv --quiet --clear --python $(PYTHON) .venv; fi; \
	$(UV) pip sync --quiet --python $(BIN)/python --require-hashes $(1); \
	echo "Linking this checkout into .venv"; \
	$(UV) pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation --editable .; \
	touch $@
endef

$(RUNTIME): $(UV) requirements/runtime.txt requirements/build.txt pyproject.toml
	@$(ALONE); if [ -e $(DEV) ]; then exit 0; fi; \
	$(call install,requirements/runtime.txt requirements/build.txt)

$(DEV): $(UV) requirements/dev.txt pyproject.toml
	@$(ALONE); $(call install,requirements/dev.txt)

run: runtime ## start the demo in ./workspace: sandbox, engine and web page
	@exec $(BIN)/tsuzuki demo workspace

dist: runtime ## build the wheel and the source distribution into ./dist
	@rm -f dist/tsuzuki-*
	@$(BIN)/hatchling build --directory dist

lint: setup ## check formatting, ruff, mypy and import contracts
	@$(BIN)/ruff format --check --quiet .
	@$(BIN)/ruff check --quiet .
	@$(BIN)/mypy --no-error-summary
	@$(BIN)/lint-imports --no-logo > .cache-lint-imports 2>&1 || { cat .cache-lint-imports; rm -f .cache-lint-imports; exit 1; }; rm -f .cache-lint-imports

format: setup ## format the code and apply safe fixes
	@$(BIN)/ruff check --quiet --fix . || true
	@$(BIN)/ruff format --quiet .

# Three processes on two cores, because tests spend a third of their time waiting for other processes.
# The commit determines a seed for the order of tests, the simulation, and the database of tests that need only one.
# SEED=7 repeats the run with that seed. See docs/contributing.md.
PYTEST = $(BIN)/pytest -q -n 3 --dist worksteal $(if $(SEED),--seed $(SEED))

# Lint uses one core while the tests start; its findings are printed after them.
define tests_beside_lint
	@lint=$$(mktemp); trap 'kill $$pid 2>/dev/null || true; rm -f "$$lint"' EXIT; \
	$(MAKE) --no-print-directory lint >"$$lint" 2>&1 & pid=$$!; \
	tests=0; $(1) || tests=$$?; style=0; wait $$pid || style=$$?; cat "$$lint" >&2; exit $$((tests ? tests : style))
endef

test: setup ## run everything a change must pass (budget: ten minutes on two idle cores)
	$(call tests_beside_lint,$(PYTEST) --one-database)

test-fast: setup ## run lint and all tests not marked slow (budget: three minutes)
	$(call tests_beside_lint,$(PYTEST) --one-database -m "not slow and not full")

test-full: setup ## run all tests: both databases, long soaks, many seeds, and other projects' test files (downloaded)
	$(call tests_beside_lint,$(PYTEST) --hypothesis-profile=new -m "full or not full")

# BASE=HEAD~3: changes since that revision (default: the newest commit that is also on origin/main).
test-changed: setup ## run the tests nearest to your changes, for three minutes
	@modules=$$($(BIN)/python -m tools.changed_tests $(if $(BASE),--base $(BASE))); \
	test -z "$$modules" || $(BIN)/pytest -q -n 3 --dist loadfile --no-loadscope-reorder --in-order --stop-after 150 \
	  $(if $(SEED),--seed $(SEED)) $$modules

# N=60: number of mutants (60 take about 20 minutes). SEED=7: which ones.
mutants: setup ## change one thing at a time in src and check whether a test fails
	@$(BIN)/python -m tools.mutants --number $(or $(N),60) $(if $(SEED),--seed $(SEED))

reference: openapi ## regenerate docs/reference from the code
	@$(BIN)/python -m tools.reference docs/reference

# No --quiet, because mkdocs then does not count warnings.
docs: setup ## build docs/ into a static site in ./site (warnings are errors)
	@$(BIN)/mkdocs build --strict

# SECONDS=60: shorter. SEED=7: repeat the faults of an earlier soak. Logs of a failed soak are in .cache/soak.
soak: setup ## run two nodes with all collectors through ten minutes of kills, pauses and cuts, then verify the results
	@$(BIN)/python -W ignore -m tests.soak --seconds $(or $(SECONDS),600) $(if $(SEED),--seed $(SEED))

# SHOW=20: list the first missing tags per language. RAISE=1: store improved results.
check-ctags: setup ## compare with universal-ctags' unit cases: CTAGS_UNITS=/path/to/ctags/Units
	@test -n "$(CTAGS_UNITS)" || { echo "CTAGS_UNITS is not set. Run: make check-ctags CTAGS_UNITS=/path/to/ctags/Units" >&2; exit 2; }
	@CTAGS_UNITS="$(abspath $(CTAGS_UNITS))" SHOW="$(or $(SHOW),0)" RAISE="$(RAISE)" $(BIN)/pytest -q -s -m full tests/collectors/codeindex/test_ctags_units.py

# SHORT=1: smaller numbers and one round. Benchmarks run one after another; a failed one is left out of the report.
bench: setup ## run all benchmarks, including installed collectors', and write bench/results/report.md and report.svg
	@$(BIN)/python -W ignore -m bench $(if $(SHORT),--short)

bench-report: setup ## write the report from the latest results
	@$(BIN)/python -W ignore -m bench.report

# SHORT=1: three minutes. ONLY="drain of": only measures whose title contains this. PEERS=pgqueuer,huey: only these peers.
bench-engine: setup ## measure the engine and its peers; prints a table and writes bench/results/engine.json
	@$(BIN)/python -W ignore -m bench.engine.run $(if $(SHORT),--short) $(if $(ONLY),--only "$(ONLY)") $(if $(PEERS),--peers "$(PEERS)")

# SHAPES=1x1,50x1,10x20: processes x workers per process.
bench-scale: setup ## measure the limits of one leader and one PostgreSQL server
	@$(BIN)/python -W ignore -m bench.engine.scale $(if $(SHORT),--short) $(if $(SHAPES),--shapes "$(SHAPES)")

bench-commits: setup ## compare the collection of commits with git itself
	@$(BIN)/python -W ignore -m bench.commits.measure $(if $(SHORT),--short)

bench-books: setup ## compare a book collection with a bare loop; PEER=/path/to/python-with-dlt adds dlt
	@$(BIN)/python -W ignore -m bench.books $(if $(SHORT),--short) $(if $(PEER),--peer $(PEER))

bench-feeds: setup ## compare feeds with bare loops; measure memory and selection of the next item; ONLY=items runs one part
	@$(BIN)/python -W ignore -m bench.feeds $(if $(SHORT),--short) $(if $(ONLY),--only $(ONLY))

# TREE=/path/to/tree: instead of Django. ONLY=cold: one part.
bench-codeindex: setup ## compare the code index with universal-ctags, code-index-mcp and git status; memory, lookups, answers
	@$(BIN)/python -W ignore -m bench.codeindex $(if $(SHORT),--short) $(if $(TREE),--tree "$(TREE)") $(if $(ONLY),--only $(ONLY))

# DATABASE=postgresql: one database. RUNS=10000000: number of stored runs. ONLY=submit: one part.
bench-web: setup ## measure lists, counts and pages with a million runs, and 16 clients starting runs, on both databases
	@for one in $(or $(DATABASE),sqlite postgresql); do \
	  $(BIN)/python -W ignore -m bench.web --database $$one $(if $(RUNS),--runs $(RUNS),$(if $(SHORT),--runs 100000 --rounds 5)) $(if $(ONLY),--only $(ONLY)); done

bench-cli: setup ## compare read-only commands with a bare Python process
	@$(BIN)/python -W ignore -m bench.cli $(if $(SHORT),--rounds 3)

openapi: setup ## regenerate docs/reference/openapi.json
	@$(BIN)/python -m tsuzuki.web.openapi_file docs/reference/openapi.json

picture: setup ## take a new screenshot of the demo's web page for the README
	@$(BIN)/python tools/take_picture.py

lock: $(UV) ## refresh the hash-pinned locks
	@echo uv | $(UV) pip compile --quiet --universal --generate-hashes --no-header --no-annotate - -o requirements/uv.txt --upgrade
	@$(UV) pip compile --quiet --universal --generate-hashes --no-header --no-annotate --python-version 3.11 --all-extras pyproject.toml -o requirements/runtime.txt --upgrade
	@$(UV) pip compile --quiet --universal --generate-hashes --no-header --no-annotate --python-version 3.11 --all-extras --group dev -c requirements/runtime.txt pyproject.toml -o requirements/dev.txt --upgrade
	@$(UV) pip compile --quiet --universal --generate-hashes --no-header --no-annotate --python-version 3.11 -c requirements/runtime.txt requirements/build.in -o requirements/build.txt --upgrade
	@for peer in requirements/deploy.in requirements/bench/*.in; do $(UV) pip compile --quiet --universal --generate-hashes --no-header --no-annotate --python-version 3.11 $$peer -o $${peer%.in}.txt --upgrade; done

clean: ## remove everything created by make, except your workspace
	@rm -rf .venv .tools bench/.peers .mypy_cache .pytest_cache .ruff_cache .hypothesis dist site

.PHONY: help setup runtime run dist lint format test test-fast test-full test-changed mutants soak reference docs check-ctags bench bench-report bench-engine bench-scale bench-commits bench-books bench-feeds bench-codeindex bench-web bench-cli openapi picture lock clean
