# `make run` and `make test` need Linux, Python 3.11+, git and a package registry. Nothing else, no root.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

PYTHON ?= python3
# Compiled modules are kept: every process a test starts would compile everything anew.
unexport PYTHONDONTWRITEBYTECODE
UV := .tools/bin/uv
BIN := .venv/bin
# One of the two exists: for running, or for developing, which includes running.
RUNTIME := .venv/.runtime
DEV := .venv/.dev

help: ## what can be made
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

setup: $(DEV) ## uv, and .venv with everything from the hash-pinned lock

# A .venv for developing stays one.
runtime: $(if $(wildcard $(DEV)),$(DEV),$(RUNTIME))

# One `make` at a time: `make test` may be started while `make run` still installs.
ALONE = mkdir -p .cache && exec 9>.cache/setup.lock && flock 9

$(UV): requirements/uv.txt
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "Tsuzuki needs Python 3.11 or newer; say PYTHON=/path/to/python3.11")'
	@$(ALONE); if [ $(UV) -nt $< ]; then exit 0; fi; \
	echo "Installing uv into .tools"; \
	rm -rf .tools; $(PYTHON) -m venv .tools; \
	.tools/bin/pip install --quiet --disable-pip-version-check --require-hashes -r $<; \
	touch $(UV)

# $(call install,LOCKS): .venv gets what the locks name, and nothing else. A demo that runs from it goes on, because only
# packages are replaced. Without a stamp an installation was interrupted, so .venv is made anew.
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

lint: setup ## format check, ruff, mypy, import contracts
	@$(BIN)/ruff format --check --quiet .
	@$(BIN)/ruff check --quiet .
	@$(BIN)/mypy --no-error-summary
	@$(BIN)/lint-imports --no-logo > .cache-lint-imports 2>&1 || { cat .cache-lint-imports; rm -f .cache-lint-imports; exit 1; }; rm -f .cache-lint-imports

format: setup ## write the format and the safe fixes
	@$(BIN)/ruff check --quiet --fix . || true
	@$(BIN)/ruff format --quiet .

# Three processes on two cores: a third of the time a test waits for another process and not for the processor.
# A commit draws a seed: the order of the tests, the seeds of the simulation, and which database a test runs on where
# the two hardly differ. SEED=7 repeats the run of another one. See docs/contributing.md.
PYTEST = $(BIN)/pytest -q -n 3 --dist worksteal $(if $(SEED),--seed $(SEED))

# Lint takes one of the cores while the tests begin; what it found is printed after them.
define tests_beside_lint
	@lint=$$(mktemp); trap 'kill $$pid 2>/dev/null || true; rm -f "$$lint"' EXIT; \
	$(MAKE) --no-print-directory lint >"$$lint" 2>&1 & pid=$$!; \
	tests=0; $(1) || tests=$$?; style=0; wait $$pid || style=$$?; cat "$$lint" >&2; exit $$((tests ? tests : style))
endef

test: setup ## everything a change must pass; the budget is ten minutes on two quiet cores
	$(call tests_beside_lint,$(PYTEST) --one-database)

test-fast: setup ## the same without the slow ones; the budget is three minutes
	$(call tests_beside_lint,$(PYTEST) --one-database -m "not slow and not full")

test-full: setup ## everything: both databases, long soaks, many seeds, and the test documents of others, which are downloaded
	$(call tests_beside_lint,$(PYTEST) --hypothesis-profile=new -m "full or not full")

# BASE=HEAD~3: what has changed since then; without it, since the newest commit that origin/main has too.
test-changed: setup ## the tests that are nearest to what has changed, for three minutes
	@modules=$$($(BIN)/python -m tools.changed_tests $(if $(BASE),--base $(BASE))); \
	test -z "$$modules" || $(BIN)/pytest -q -n 3 --dist loadfile --no-loadscope-reorder --in-order --stop-after 150 \
	  $(if $(SEED),--seed $(SEED)) $$modules

# N=60 SEED=7: how many, and which. A third of an hour for 60.
mutants: setup ## change one thing at a time in src, and see whether a test notices
	@$(BIN)/python -m tools.mutants --number $(or $(N),60) $(if $(SEED),--seed $(SEED))

reference: openapi ## write the pages of docs/reference anew, from the code
	@$(BIN)/python -m tools.reference docs/reference

# Without --quiet, with which mkdocs does not count the warnings either.
docs: setup ## build docs/ into a static site in ./site; a warning is an error
	@$(BIN)/mkdocs build --strict

# SECONDS=60 is shorter; SEED=7 draws the faults of an earlier soak. The logs of one that failed are in .cache/soak.
soak: setup ## two nodes, all collectors, ten minutes of kills, pauses and cuts; then everything is counted
	@$(BIN)/python -W ignore -m tests.soak --seconds $(or $(SECONDS),600) $(if $(SEED),--seed $(SEED))

# SHOW=20: the first tags of each language that are not found. RAISE=1: what is better now is stored.
check-ctags: setup ## compare with the unit cases of universal-ctags: CTAGS_UNITS=/path/to/ctags/Units
	@test -n "$(CTAGS_UNITS)" || { echo "say where the cases are: make check-ctags CTAGS_UNITS=/path/to/ctags/Units" >&2; exit 2; }
	@CTAGS_UNITS="$(abspath $(CTAGS_UNITS))" SHOW="$(or $(SHOW),0)" RAISE="$(RAISE)" $(BIN)/pytest -q -s -m full tests/collectors/codeindex/test_ctags_units.py

# SHORT=1: smaller numbers and one round. The benchmarks run one after the other; one that fails is left out of the report.
bench: setup ## every benchmark, those of installed collectors too, then one report: bench/results/report.md and report.svg
	@$(BIN)/python -W ignore -m bench $(if $(SHORT),--short)

bench-report: setup ## the report of what was measured last
	@$(BIN)/python -W ignore -m bench.report

# SHORT=1: within three minutes. ONLY="drain of": measures whose title has these words. PEERS=pgqueuer,huey: only these.
bench-engine: setup ## measure the engine and its peers: a table, and bench/results/engine.json
	@$(BIN)/python -W ignore -m bench.engine.run $(if $(SHORT),--short) $(if $(ONLY),--only "$(ONLY)") $(if $(PEERS),--peers "$(PEERS)")

# SHAPES=1x1,50x1,10x20: processes x workers in each.
bench-scale: setup ## how far one leader and one PostgreSQL carry
	@$(BIN)/python -W ignore -m bench.engine.scale $(if $(SHORT),--short) $(if $(SHAPES),--shapes "$(SHAPES)")

bench-commits: setup ## measure the collection of commits beside git itself
	@$(BIN)/python -W ignore -m bench.commits.measure $(if $(SHORT),--short)

bench-books: setup ## books beside the barest loop; PEER=/path/to/python-with-dlt measures dlt too
	@$(BIN)/python -W ignore -m bench.books $(if $(SHORT),--short) $(if $(PEER),--peer $(PEER))

bench-feeds: setup ## feeds beside bare loops of the same calls, memory, and the choice of the next item; ONLY=items measures one
	@$(BIN)/python -W ignore -m bench.feeds $(if $(SHORT),--short) $(if $(ONLY),--only $(ONLY))

# TREE=/path/to/tree instead of Django; ONLY=cold measures one.
bench-codeindex: setup ## the code index beside universal-ctags, code-index-mcp and git status; memory, lookups, answers
	@$(BIN)/python -W ignore -m bench.codeindex $(if $(SHORT),--short) $(if $(TREE),--tree "$(TREE)") $(if $(ONLY),--only $(ONLY))

# DATABASE=postgresql: on one of the two; RUNS=10000000 runs in the table; ONLY=submit measures one.
bench-web: setup ## lists, counts and pages beside a million runs, and runs started by 16 clients, on both databases
	@for one in $(or $(DATABASE),sqlite postgresql); do \
	  $(BIN)/python -W ignore -m bench.web --database $$one $(if $(RUNS),--runs $(RUNS),$(if $(SHORT),--runs 100000 --rounds 5)) $(if $(ONLY),--only $(ONLY)); done

bench-cli: setup ## how long commands that only look take, beside a bare Python
	@$(BIN)/python -W ignore -m bench.cli $(if $(SHORT),--rounds 3)

openapi: setup ## write docs/reference/openapi.json anew
	@$(BIN)/python -m tsuzuki.web.openapi_file docs/reference/openapi.json

picture: setup ## take the picture of the web page for the README anew, from the demo
	@$(BIN)/python tools/take_picture.py

lock: $(UV) ## refresh the hash-pinned locks
	@echo uv | $(UV) pip compile --quiet --universal --generate-hashes --no-header --no-annotate - -o requirements/uv.txt --upgrade
	@$(UV) pip compile --quiet --universal --generate-hashes --no-header --no-annotate --python-version 3.11 --all-extras pyproject.toml -o requirements/runtime.txt --upgrade
	@$(UV) pip compile --quiet --universal --generate-hashes --no-header --no-annotate --python-version 3.11 --all-extras --group dev -c requirements/runtime.txt pyproject.toml -o requirements/dev.txt --upgrade
	@$(UV) pip compile --quiet --universal --generate-hashes --no-header --no-annotate --python-version 3.11 -c requirements/runtime.txt requirements/build.in -o requirements/build.txt --upgrade
	@for peer in requirements/deploy.in requirements/bench/*.in; do $(UV) pip compile --quiet --universal --generate-hashes --no-header --no-annotate --python-version 3.11 $$peer -o $${peer%.in}.txt --upgrade; done

clean: ## remove what make made, not your workspace
	@rm -rf .venv .tools bench/.peers .mypy_cache .pytest_cache .ruff_cache .hypothesis dist site

.PHONY: help setup runtime run dist lint format test test-fast test-full test-changed mutants soak reference docs check-ctags bench bench-report bench-engine bench-scale bench-commits bench-books bench-feeds bench-codeindex bench-web bench-cli openapi picture lock clean
