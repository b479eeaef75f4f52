# Two commands do everything on a fresh machine with python3, make and git:
#   make demo    see it work        make test    see it hold
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
DEMO := .venv-demo
SITE := .venv-docs
RELEASE := .venv-release

.PHONY: demo pictures test test-adapters test-browser test-deep test-races torture torture-every-call soak docs test-package check generate format bench bench-quick \
	lock lock-adapters clean

# The demo needs only what the package itself needs, so it has a small environment of its own.
demo: $(DEMO)/.ready
	@PYTHONPATH=src $(DEMO)/bin/python -m sessiontree demo

$(DEMO)/.ready: requirements-runtime.lock
	@echo "installing what sessiontree needs into $(DEMO) ..."
	@$(PYTHON) -m venv $(DEMO)
	@$(DEMO)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-runtime.lock
	@touch $(DEMO)/.ready

# On a disk the tests wait for flushes most of the time, so they run in memory where there is room: 4 GB in /dev/shm.
# `make test TMPDIR=/var/tmp` runs them elsewhere; plain pytest and `make test-deep` use the disk.
MEMORY := $(shell df -Pk /dev/shm 2>/dev/null | awk '$$4 > 4000000 && NR == 2 {print $$6}')
TMPDIR ?= $(or $(MEMORY),/tmp)

# Processes that the tests start load compiled modules, even where the environment says not to write them.
test: $(READY)
	@$(BIN)/python -m compileall -q src tests
	@folder=$$(mktemp -d "$(TMPDIR)/sessiontree-XXXX") && trap 'rm -rf "$$folder"' EXIT && chmod 755 "$$folder" \
		&& PYTHONDONTWRITEBYTECODE= TMPDIR="$$folder" $(BIN)/python -m pytest

# The viewer in a real browser: Debian's Chromium, driven by Playwright. Pictures of the docs come from it: PICTURES=1.
test-browser: $(READY) $(VENV)/.browser
	@command -v chromium >/dev/null || { [ "$$(id -u)" = 0 ] && apt-get update -qq && apt-get install -y -qq chromium >/dev/null; } \
		|| { echo "make test-browser needs Chromium at /usr/bin/chromium: apt-get install chromium"; exit 1; }
	@folder=$$(mktemp -d "$(TMPDIR)/sessiontree-XXXX") && trap 'rm -rf "$$folder"' EXIT \
		&& SESSIONTREE_BROWSER=1 TMPDIR="$$folder" $(BIN)/python -m pytest tests/browser -n 2

$(VENV)/.browser: requirements-browser.lock $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-browser.lock
	touch $(VENV)/.browser

test-deep: $(READY)
	SESSIONTREE_PROFILE=deep $(BIN)/python -m pytest tests/unit tests/model tests/property tests/process tests/formats tests/fault tests/contract tests/postgres tests/workspace tests/validation tests/seeds tests/operators -m "deep or not deep"

# The adapters with the newest versions of their frameworks, in two environments: some need openai 3, some openai 2.
# Their types are checked there too, as the frameworks are nowhere else.
ADAPTERS := .venv-adapters
ADAPTERS_OPENAI2 := .venv-adapters-openai2
OPENAI2 := llama_index strands
ADAPTER_FILES := $(shell find src/sessiontree/adapters tests_adapters examples/frameworks benchmarks/adapters -name '*.py')
FILES_OPENAI2 := $(foreach name,$(OPENAI2),$(foreach file,$(ADAPTER_FILES),$(if $(findstring $(name),$(file)),$(file))))
FILES_OPENAI3 := $(filter-out $(FILES_OPENAI2),$(ADAPTER_FILES))
test-adapters: $(ADAPTERS)/.ready $(ADAPTERS_OPENAI2)/.ready
	$(ADAPTERS)/bin/mypy $(FILES_OPENAI3)
	$(ADAPTERS)/bin/python -m pytest $(filter tests_adapters/test_%,$(FILES_OPENAI3))
ifneq ($(FILES_OPENAI2),)
	$(ADAPTERS_OPENAI2)/bin/mypy $(FILES_OPENAI2)
	$(ADAPTERS_OPENAI2)/bin/python -m pytest $(filter tests_adapters/test_%,$(FILES_OPENAI2))
endif

$(ADAPTERS)/.ready: requirements-adapters.lock
$(ADAPTERS_OPENAI2)/.ready: requirements-adapters-openai2.lock
$(ADAPTERS)/.ready $(ADAPTERS_OPENAI2)/.ready:
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r $<
	$(@D)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	touch $@

# Every race of two writers, at least 200 rounds each: sessions, sweeps and leases, in threads, tasks and processes.
RACES := tests/unit/test_simple_store_races.py $(addprefix tests/process/test_,session_races.py checkpointed_races.py \
	simple_store_between_processes.py sessions_between_processes.py sweeps_and_writers.py replaced_contexts.py) \
	tests/seeds/test_floret_races.py
test-races: $(READY)
	SESSIONTREE_PROFILE=deep $(BIN)/python -m pytest $(RACES) -n 2 -m "deep or not deep"

# Interferes with every system call of a program that writes, and writes what came of it to docs/explanation/durability.md.
# 20 minutes; SECONDS=60 for less, SEED=1 for the same order again.
SECONDS ?= 1200
torture: $(READY)
	cd tests && $(abspath $(BIN))/python -m torture.ladder --seconds $(SECONDS) $(if $(SEED),--seed $(SEED))

# Every kind of fault at every single system call once: about an hour and a half of CPU time on all cores. FAULTS=kill for some of it.
FAULTS ?= kill EIO ENOSPC EINTR short stop
torture-every-call: $(READY)
	cd tests && $(abspath $(BIN))/python -m torture.ladder --every-call $(FAULTS)

# An hour of chats in one process: memory, descriptors, files, CPU and latency stay flat. SOAK_SECONDS=900 for less, STORE=jsonl or postgres.
SOAK_SECONDS ?= 3600
STORE ?= sqlite
soak: $(READY)
	cd tests && $(abspath $(BIN))/python -m torture.soak --seconds $(SOAK_SECONDS) --store $(STORE) $(if $(SEED),--seed $(SEED))

check: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python -m pyright --pythonpath $(BIN)/python examples/*.py
	$(BIN)/lint-imports --no-cache
	$(BIN)/codespell *.md docs src examples tools benchmarks
	$(BIN)/python tools/async_to_sync.py --check

# What the commands show: the snapshots of the tests, and the pictures of the docs. Look at them before you commit them.
pictures: $(READY)
	UPDATE_SCREENS=1 $(BIN)/python -m pytest -q -n 0 tests/cli/test_screens.py

# Writes x.py from every x_async.py that is a source.
generate: $(READY)
	$(BIN)/python tools/async_to_sync.py

format: $(READY)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# The site, into build/site; a warning is an error. It needs no other host, neither to be built nor to be read.
docs: $(SITE)/.ready
	$(SITE)/bin/zensical build --clean

$(SITE)/.ready: requirements-docs.lock
	$(PYTHON) -m venv $(SITE)
	$(SITE)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-docs.lock
	touch $(SITE)/.ready

# The wheel in empty environments: the core, each extra alone, and the lowest versions that the ranges allow.
test-package: $(RELEASE)/.ready
	$(RELEASE)/bin/python tools/try_package.py

$(RELEASE)/.ready: requirements-release.lock
	$(PYTHON) -m venv $(RELEASE)
	$(RELEASE)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-release.lock
	touch $(RELEASE)/.ready

# Measures sessiontree beside raw storage and its peers, and writes docs/benchmarks/. Less than 20 minutes on a quiet machine;
# `make bench-quick` takes less than 2 and only prints. The peers have an environment of their own.
BENCH := .venv-bench
bench: $(BENCH)/.ready
	PYTHONPATH=src $(BENCH)/bin/python -W ignore -m benchmarks $(ARGS)

bench-quick: $(BENCH)/.ready
	PYTHONPATH=src $(BENCH)/bin/python -W ignore -m benchmarks --quick $(ARGS)

$(BENCH)/.ready: requirements-bench.lock
	$(PYTHON) -m venv $(BENCH)
	$(BENCH)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-bench.lock
	@touch $(BENCH)/.ready

COMPILE_GROUPS := $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header \
	--no-annotate --no-emit-index-url
COMPILE := $(COMPILE_GROUPS) pyproject.toml

# The lock holds versions and hashes only, no address of a registry.
lock: $(READY)
	$(BIN)/python -m pip install --quiet uv
	$(COMPILE) --extra all --group dev -o requirements.lock
	$(COMPILE) -c requirements.lock -o requirements-runtime.lock
	$(COMPILE_GROUPS) -c requirements.lock --group browser -o requirements-browser.lock
	$(COMPILE_GROUPS) --group docs -o requirements-docs.lock
	$(COMPILE_GROUPS) --group release -o requirements-release.lock
	$(COMPILE) --extra postgres --extra otel --group bench -o requirements-bench.lock

# The newest versions of the frameworks.
lock-adapters: $(READY)
	$(BIN)/python -m pip install --quiet uv
	$(COMPILE) --upgrade --group test-adapters --extra postgres --extra langgraph --extra langchain --extra mcp \
		--extra claude-agent-sdk --extra openai-agents --extra pydantic-ai --extra google-adk --extra agent-framework \
		-o requirements-adapters.lock
	$(COMPILE) --upgrade --group test-adapters-openai2 --extra postgres --extra llama-index --extra strands \
		-o requirements-adapters-openai2.lock

$(READY): requirements.lock pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	$(BIN)/python -m compileall -q src
	touch $(READY)

clean:
	rm -rf $(VENV) $(DEMO) $(SITE) $(RELEASE) $(BENCH) $(ADAPTERS) $(ADAPTERS_OPENAI2) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache build dist
