# Everything there is to ask for; `make` alone lists it. Needs Python 3.11 or newer and make, nothing else.
#
# What is done once leaves a stamp named after the content it was made from: it is done again when the
# content changes or when its folder is deleted, and a second call costs nothing.

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help run setup test check types web docs bench lock wheel clean weights browser
MAKEFLAGS += --no-print-directory

VENV   := .venv
PYTHON := $(VENV)/bin/python
NODE   := $(CURDIR)/$(PYTHON) $(CURDIR)/scripts/node.py
PIP    := $(PYTHON) -m pip --disable-pip-version-check -qq

content  = $(firstword $(shell cat $(1) | cksum))
sources  = $(firstword $(shell find web -type d \( -name node_modules -o -name .svelte-kit -o -path web/build \) \
             -prune -o -type f -exec cksum {} + | sort | cksum))
done     = @mkdir -p $(@D) && touch $@

SELF       := $(VENV)/stamps/self-$(call content,pyproject.toml)
RUN        := $(VENV)/stamps/run-$(call content,requirements/run.txt)
TEST       := $(VENV)/stamps/test-$(call content,requirements/test.txt)
WEB_DEPS   := web/node_modules/.stamp-$(call content,web/package-lock.json)
WEB        := web/build/.stamp-$(call sources)

help:  ## list what can be asked for
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' Makefile

# --- using it ------------------------------------------------------------------------------------------------

run: $(SELF) $(WEB) weights  ## start Tertulia and say where to open it
	@exec $(VENV)/bin/tertulia serve

setup: $(SELF)  ## the Python environment and the server's packages

web: $(WEB)  ## build the web interface

weights: $(SELF)
	@$(VENV)/bin/tertulia models pull smollm2
	@$(VENV)/bin/tertulia models pull minilm

# --- working on it -------------------------------------------------------------------------------------------

test: $(TEST) $(SELF) $(WEB) weights browser  ## every check and every test, as CI runs them
	@$(PYTHON) scripts/suite.py test

check: $(TEST) $(SELF) $(WEB_DEPS)  ## format, lint, types, rooms, generated files
	@$(PYTHON) scripts/suite.py check

types: $(TEST) $(SELF) $(WEB_DEPS)  ## write the web's types from the server's API
	@$(PYTHON) scripts/api_types.py

docs: $(TEST) $(SELF)  ## write the pages that come from the code
	@$(PYTHON) -m scripts.reference

BARS := idle first_token message_cpu chunk_cpu four_voices burst long_conversation context_assembly javascript search indexing
bench: $(TEST) $(SELF)  ## measure speed; each bar prints its figure last
	@for bar in $(BARS); do echo "== $$bar" && $(PYTHON) -m benchmarks.$$bar || exit 1; done

wheel: $(SELF)  ## build dist/*.whl, the web inside
	@$(PYTHON) -m hatchling build -t wheel

lock:  ## pin every package again; `make lock UPGRADE=--upgrade` takes newer ones
	@sh scripts/lock $(UPGRADE)

browser:
	@sh scripts/chromium

clean:  ## delete what make made; your data stays
	rm -rf $(VENV) dist web/node_modules web/build web/.svelte-kit .mypy_cache .ruff_cache .pytest_cache .import_linter_cache

# --- done once -----------------------------------------------------------------------------------------------

$(PYTHON):
	@echo "Making a Python environment (1 of 4)…"
	@sh scripts/environment $(VENV)

$(RUN): | $(PYTHON)
	@echo "Installing the server's packages (2 of 4), about a minute…"
	@$(PIP) install --require-hashes -r requirements/run.txt
	$(done)

$(TEST): | $(RUN)
	@echo "Installing the test tools, about half a minute…"
	@$(PIP) install --require-hashes -r requirements/test.txt
	$(done)

$(SELF): | $(RUN)
	@$(PIP) install --no-deps --no-build-isolation -e .
	$(done)

$(WEB_DEPS): | $(PYTHON)
	@echo "Fetching the web interface's packages (3 of 4)…"
	@$(PYTHON) scripts/node.py --ensure
	@cd web && $(NODE) npm ci >../$(VENV)/web.log 2>&1 || { cat ../$(VENV)/web.log; exit 1; }
	$(done)

$(WEB): | $(WEB_DEPS)
	@echo "Building the web interface (4 of 4)…"
	@cd web && $(NODE) npm run build >../$(VENV)/web.log 2>&1 || { cat ../$(VENV)/web.log; exit 1; }
	$(done)
