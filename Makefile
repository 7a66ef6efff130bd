SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.ONESHELL:

# The environment's own python starts in a tenth of the time of a version manager's shim.
PYTHON := $(or $(wildcard .venv/bin/python),python3)
TOOLCHAIN := PYTHONPATH=dev $(PYTHON) -m toolchain
WITH_TOOLS := tools=$$($(TOOLCHAIN) env) && eval "$$tools"
# One more than the cores that the suite has to fit on: a test waits for a host half of its time.
PARALLEL ?= 3

.PHONY: help setup env demo test test-faults bench lint stop clean

help:  ## Show what there is
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1\t/' | expand -t 20

setup:  ## Install or build what is missing; nothing to do the second time
	@$(TOOLCHAIN) setup

env:  ## Print export lines, to run pulumi by hand: eval "$(make -s env)"
	@$(TOOLCHAIN) env

demo:  ## Start a practice GPU host, serve a model, switch to another
	@$(WITH_TOOLS)
	exec python dev/demo.py

test: lint  ## Run every test
	@$(WITH_TOOLS)
	exec pytest -n $(PARALLEL) --dist loadgroup

test-faults:  ## Let every fault strike in every phase; the table goes to build/faults.json
	@$(WITH_TOOLS)
	FAULTS=all exec pytest -n $(PARALLEL) tests/faults

bench:  ## Compare with what people use today; ONLY=downtime HOSTS=1,5,20 RUNS=5
	@$(WITH_TOOLS)
	exec python dev/bench $(if $(ONLY),--only $(ONLY)) $(if $(HOSTS),--hosts $(HOSTS)) $(if $(RUNS),--runs $(RUNS))

lint:  ## Check style and types
	@$(WITH_TOOLS)
	ruff check
	ruff format --check
	mypy

stop:  ## Stop all practice hosts
	@$(PYTHON) dev/sandbox stop --all

clean: stop  ## Stop all practice hosts, remove their Pulumi state and .venv; what was built stays
	@rm -rf .venv .local
