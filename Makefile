# The only entry point. Each target says what it does behind `##`; `make help` prints those lines below their `##@` heading.
.DEFAULT_GOAL := help
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules --warn-undefined-variables
# Without its bytecode each start would compile the SDK anew.
unexport PYTHONDONTWRITEBYTECODE

STAGE ?= dev
PYTHON ?= python3
BIN := .venv/bin

.PHONY: help
help: ## Show this list
	@awk -F ':.*## ' '/^##@ / { printf "\n%s\n", substr($$0, 5) } \
		/^[a-z][a-zA-Z_-]*:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

##@ Environments
# A stamp is newer than its lock, so that a second run has nothing to do.
ENV := .venv/.stamp
EMULATOR_ENV := .local/emulator/.stamp
AUDITOR_ENV := .local/auditor/.stamp

# uv takes seconds, but does not know pip's own settings (an index, a certificate): where it fails, pip tries.
WITH_PIP = { echo "uv could not (see above); pip tries, which takes minutes" >&2; \
	$(1) -m pip install --quiet --disable-pip-version-check --require-hashes -r $(2); }

.PHONY: env
env: $(ENV) $(EMULATOR_ENV) ## Make the environments from their hashed locks (the other targets do it by themselves)

.venv/bin/python:
	@command -v $(PYTHON) >/dev/null || { echo "No $(PYTHON) on PATH: install Python 3.11 or newer, or set PYTHON=" >&2; exit 2; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "$(PYTHON) is older than 3.11: set PYTHON= to a newer one" >&2; exit 2; }
	@echo "Making .venv"
	@$(PYTHON) -m venv .venv

$(ENV): requirements.lock pyproject.toml | .venv/bin/python
	@echo "Installing requirements.lock into .venv"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r local/installer.lock
	@VIRTUAL_ENV=.venv $(BIN)/uv pip sync --quiet --require-hashes requirements.lock || $(call WITH_PIP,$(BIN)/python,requirements.lock)
	@VIRTUAL_ENV=.venv $(BIN)/uv pip install --quiet --no-deps --no-build-isolation --editable .
	@touch $@

$(EMULATOR_ENV): local/emulator.lock | $(ENV)
	@echo "Installing local/emulator.lock into .local/emulator"
	@mkdir -p .local
	@$(PYTHON) -m venv .local/emulator
	@VIRTUAL_ENV=.local/emulator $(BIN)/uv pip sync --quiet --require-hashes local/emulator.lock || $(call WITH_PIP,.local/emulator/bin/python,local/emulator.lock)
	@touch $@

$(AUDITOR_ENV): local/auditor.lock | $(ENV)
	@echo "Installing local/auditor.lock into .local/auditor (1.4 GB; a minute or two)"
	@mkdir -p .local
	@$(PYTHON) -m venv .local/auditor
	@VIRTUAL_ENV=.local/auditor $(BIN)/uv pip sync --quiet --require-hashes local/auditor.lock
	@touch $@

LOCK = $(BIN)/uv pip compile pyproject.toml --quiet --universal --python-version 3.11 --generate-hashes \
	--no-emit-index-url --no-annotate --no-header

.PHONY: lock
lock: $(ENV) ## Write the locks anew from pyproject.toml (no address gets into them)
	@$(LOCK) --group dev --output-file requirements.lock
	@$(LOCK) --group emulator --output-file local/emulator.lock
	@$(LOCK) --group auditor --output-file local/auditor.lock
	@$(LOCK) --group api --constraint requirements.lock --output-file apps/api/requirements.lock
	@$(LOCK) --group worker --constraint requirements.lock --output-file apps/worker/requirements.lock
	@$(LOCK) --group tickets --constraint requirements.lock --output-file apps/tickets/requirements.lock
	@sed -n '/^uv==/,/[^\\]$$/p' requirements.lock > local/installer.lock

##@ Checks
.PHONY: format
format: $(ENV) ## Format the code and mend what the linter can mend
	@$(BIN)/ruff check --fix --quiet . || true
	@$(BIN)/ruff format --quiet .

.PHONY: lint
lint: $(ENV) ## Lint, formatting, types (strict), import walls
	@$(BIN)/ruff check --quiet .
	@$(BIN)/ruff format --check --quiet .
	@echo "Checking types (the first run takes minutes, the next ones seconds)"
	@$(BIN)/mypy
	@walls=$$($(BIN)/lint-imports --no-logo --cache-dir .local/cache/import-linter) || { echo "$$walls"; exit 1; }
	@echo "Success: every import wall stands"

# Two files of tests at a time, each with servers of its own: many wait for something. A debugger wants WORKERS=0.
PYTEST = $(BIN)/python -m pytest --numprocesses=$(WORKERS) --dist=loadfile
WORKERS ?= 2

.PHONY: test
test: $(ENV) $(EMULATOR_ENV) build ## Run the tests; the skipped ones say what they lack (ARGS="apps/api -m unit", WORKERS=2)
	@$(PYTEST) $(ARGS)

.PHONY: test-browser
test-browser: $(ENV) $(EMULATOR_ENV) build ## Try the pages in a real Chromium; pictures of each go to .local/screenshots
	@$(PYTEST) tests/browser $(ARGS)

.PHONY: check
check: lint test ## lint and test

ARGS ?=

.PHONY: bench
bench: $(ENV) $(EMULATOR_ENV) $(ZIPS) ## Measure what demo and rehearsal cost in CPU, as ratios to a calibration; 1 if above a limit
	@$(BIN)/python -m benchmarks.platform

##@ Artifacts
# Folders are prerequisites too: a deleted file changes only its folder's time.
ZIPS := dist/worker.zip dist/tickets.zip
ZIP_SOURCES := ops/artifacts.py $(wildcard apps/worker/requirements.lock apps/tickets/requirements.lock) \
	$(shell find apps/worker/src apps/tickets/src packages/contracts/src -name __pycache__ -prune -o -print)

.PHONY: build
build: $(ZIPS) ## Build the functions' zips (dist/worker.zip, dist/tickets.zip)

$(ZIPS): dist/%.zip: $(ZIP_SOURCES) $(ENV)
	@$(BIN)/python -m ops.artifacts $*

##@ On AWS (STAGE=dev unless you say otherwise)
# Each is one run of `python -m ops.…`, which checks first what it needs and exits 2 with nothing changed if that is
# missing. YES=1 answers its questions, RESTORE_FROM=, BASE_IMAGE= and CONTAINER_ENGINE= reach it as they are.
AWS_TARGETS := push preview up destroy outputs compute-on compute-off data-on data-off sleep wake
$(AWS_TARGETS): export STAGE := $(STAGE)
DEPLOY = @$(BIN)/python -m ops.deploy

.PHONY: image $(AWS_TARGETS)
image: $(ENV) ## Build the API's image with docker, podman or buildah (BASE_IMAGE=, PLATFORM=, CONTAINER_ENGINE=)
	@$(BIN)/python -m ops.image build
push: $(ENV) ## Push the image to STAGE's repository and name its digest in Pulumi.STAGE.yaml
	@$(BIN)/python -m ops.image push
preview: $(ENV) ## Show what `make up` would do in STAGE, and whether it would refuse (ARGS=--diff: every property)
	$(DEPLOY) preview $(ARGS)
up: $(ENV) ## Deploy STAGE: preview, refuse what loses data, ask (YES=1: do not), apply
	$(DEPLOY) up
destroy: $(ENV) ## Delete STAGE with all its data and snapshots; asks for its name (CONFIRM=STAGE)
	$(DEPLOY) destroy
outputs: $(ENV) ## Print what STAGE's stack tells: addresses, names, ARNs
	$(DEPLOY) outputs
compute-on: $(ENV) ## Bring STAGE's containers and load balancer up
	$(DEPLOY) compute-on
compute-off: $(ENV) ## Take STAGE's containers and load balancer away; nothing is lost
	$(DEPLOY) compute-off
data-on: $(ENV) ## Bring STAGE's database back from its final snapshot (or RESTORE_FROM=snapshot|none)
	$(DEPLOY) data-on
data-off: $(ENV) ## Take STAGE's database and cache away; a final snapshot keeps every booking
	$(DEPLOY) data-off
sleep: $(ENV) ## compute-off and data-off in one run
	$(DEPLOY) sleep
wake: $(ENV) ## data-on and compute-on in one run (RESTORE_FROM= as in data-on)
	$(DEPLOY) wake

# Only what is said on the command line counts: many people's shells have an EMAIL of their own.
said = $(if $(findstring command,$(origin $(1))),$($(1)))
grant local-grant: export GRANT_EMAIL := $(call said,EMAIL)
grant local-grant: export GRANT_ROLE := $(call said,ROLE)
grant local-grant: export GRANT_REVOKE := $(call said,REVOKE)
grant: export STAGE := $(STAGE)

.PHONY: grant
grant: $(ENV) ## Make EMAIL= an organiser of STAGE (REVOKE=1: no longer); the account must be registered
	@$(BIN)/python -m ops.grant

##@ On this machine, without AWS (STAGE=dev unless you say otherwise)
# Its state is below .local/state/<stage>; nothing else on this machine is touched.
SEATS ?= 3
CUSTOMERS ?= 1
COMPUTE ?= on
DATA ?= on
LOCAL := $(BIN)/python -m local

.PHONY: demo
demo: $(ENV) $(EMULATOR_ENV) $(ZIPS) ## Book on a fresh local platform, see mail and tickets come (SEATS=3 CUSTOMERS=1)
	@exec $(LOCAL) demo --seats $(SEATS) --customers $(CUSTOMERS)

.PHONY: local
local: $(ENV) $(EMULATOR_ENV) $(ZIPS) ## Bring a stage up on this machine, as it was left (STAGE=dev COMPUTE=on DATA=on)
	@exec $(LOCAL) up --stage $(STAGE) --compute $(COMPUTE) --data $(DATA)

.PHONY: local-reset
local-reset: $(ENV) ## Delete all that a stage keeps on this machine (STAGE=dev)
	@$(LOCAL) reset --stage $(STAGE)

.PHONY: local-grant
local-grant: $(ENV) ## Make EMAIL= an organiser of a stage that runs on this machine (REVOKE=1: no longer)
	@$(LOCAL) grant --stage $(STAGE)

MINUTES ?= 5
SEED ?=

.PHONY: soak
soak: $(ENV) $(EMULATOR_ENV) $(ZIPS) ## Book while processes are killed and paused at random, then check the ledger (MINUTES=5 SEED=)
	@exec $(BIN)/python -m tests.faults.soak --minutes $(MINUTES) $(if $(SEED),--seed $(SEED))

.PHONY: rehearse
rehearse: $(ENV) $(EMULATOR_ENV) $(ZIPS) ## Deploy STAGE to this machine, book, flip, destroy; say what each step did (ARGS=--json)
	@exec $(BIN)/python -m local.rehearse --stage $(STAGE) $(ARGS)

.PHONY: auditor audit
auditor: $(AUDITOR_ENV) ## Make the auditor's environment, so that `make test` audits too (1.4 GB)
audit: $(ENV) $(EMULATOR_ENV) $(AUDITOR_ENV) $(ZIPS) ## Audit dev and prod on this machine with Prowler; compare with docs/security.md
	@exec $(BIN)/python -m local.audit
