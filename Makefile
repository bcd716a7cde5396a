# fedreuse: everything a new machine needs is done by the targets themselves.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

# what pytest makes of the tests is kept for the next call, whatever the shell says
export PYTHONDONTWRITEBYTECODE :=

.PHONY: help demo test test-long test-deploy test-flwr-latest test-browser test-nvflare fast check fuzz damage tamper kill clean docs tables hashes
help:  ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 10

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[all,dev,docs]'
	@touch $(STAMP)

demo: $(STAMP)  ## compare dense FedAvg, Top-K, Top-K with error feedback, DG-FedReuse and lean on embedded data (two minutes)
	$(BIN)/fedreuse demo

# worksteal keeps the tests of a file together, so that what a file prepares once is prepared once
PYTEST := $(BIN)/python -m pytest -n auto --dist worksteal

test: $(STAMP)  ## run every test but the long matrices and the real federations, of which it runs a part
	$(PYTEST) -m 'not long and not deploy' --durations=25

test-long: $(STAMP)  ## run the rest of the long matrices
	$(PYTEST) -m 'long and not deploy'

test-deploy: $(STAMP)  ## run every real federation: parity of all methods, security, every fault; write the fault matrix
	mkdir -p build && rm -f build/fault-matrix.md
	FEDREUSE_FAULT_MATRIX=$(CURDIR)/build/fault-matrix.md $(BIN)/python -m pytest tests/deploy tests/cli/test_deploy.py
	cat build/fault-matrix.md

FLWR ?= flwr[simulation]
test-flwr-latest:  ## run compressed apps on the newest Flower, in simulation and on nodes, or on FLWR='flwr[simulation]==1.22.0'
	rm -rf build/flwr && $(PYTHON) -m venv build/flwr
	build/flwr/bin/python -m pip install --quiet '$(FLWR)' pytest hypothesis packaging .
	build/flwr/bin/python -m pytest -rs -W default tests/deploy/versions tests/deploy/flower/test_private.py

BROWSER := $(shell command -v chromedriver)
test-browser: $(STAMP)  ## install Chromium, its driver and axe-core where they are missing, and test reports in the browser
	$(if $(BROWSER),,apt-get install -y chromium chromium-driver)
	test -e build/node_modules/axe-core || npm install --no-save --prefix build axe-core@4.14.0
	$(BIN)/python -m pytest -rs tests/report/page/test_browser.py tests/report/page/test_live_in_browser.py

NVFLARE := build/nvflare
test-nvflare:  ## install NVFlare in an environment of its own, and test its filters and a federation of three sites
	test -e $(NVFLARE)/bin/pytest || $(PYTHON) -m venv $(NVFLARE)
	$(NVFLARE)/bin/python -m pip install --quiet --disable-pip-version-check nvflare==2.9.0 scikit-learn pytest hypothesis -e .
	$(NVFLARE)/bin/python -m pytest -rs -W default tests/deploy/nvflare

fast: $(STAMP)  ## run what costs little: no test marked slow, and of those with many cases three
	$(PYTEST) -m 'not slow and not long and not deploy' --sample 3

check: $(STAMP) docs  ## format, lint, types (strict), import contract, documentation site
	$(BIN)/ruff format --check src tests docs/site benchmarks
	$(BIN)/ruff check src tests docs/site benchmarks
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: $(STAMP)  ## build the documentation site in build/site, strictly: no broken link
	PYTHONPATH=. $(BIN)/python -m docs.site.pages
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict -f build/mkdocs.yml

tables: $(STAMP)  ## write the tables of parts in docs/ again, from the registries
	PYTHONPATH=. $(BIN)/python -m docs.site.tables

# uv reads no pip configuration, so that the folder with the CPU build of torch is passed on; versions of the file that is
# replaced would be preferred, so that it goes first
hashes: $(STAMP)  ## write requirements-release.txt: the core and the extra sim, versions of constraints.txt, hashes of their files
	rm -f requirements-release.txt
	echo setuptools | UV_FIND_LINKS="$$($(BIN)/python -m pip config get global.find-links)" $(BIN)/uv pip compile --quiet \
	  --extra sim pyproject.toml - -c constraints.txt --generate-hashes --no-header --no-annotate \
	  --python-version 3.11 --output-file requirements-release.txt
	sed -i -E 's/^(torch==[0-9.]+)\+cpu/\1/' requirements-release.txt

DAMAGE_CASES ?= 2000
damage: $(STAMP)  ## flip, cut and delete at random in run directories (DAMAGE_CASES times): the exact result or a refusal
	$(BIN)/python -m tests.runs.damage --cases $(DAMAGE_CASES)

tamper: $(STAMP)  ## random damage, whole files from elsewhere and forgeries, with a table of outcomes
	$(BIN)/python -m tests.runs.tampering

KILLS ?= 200
kill: $(STAMP)  ## kill -9 servers and workers at random moments (KILLS times), ten methods, three executors: the same bits
	$(BIN)/python -m tests.runs.kill --kills $(KILLS)

FUZZ_RUNS ?= 200000
fuzz: $(STAMP)  ## fuzz the decoders of messages and of frames (FUZZ_RUNS executions each); new inputs go to .fuzz
	@mkdir -p .fuzz .fuzz/frames
	$(BIN)/python -m tests.fuzz --frames -runs=$(FUZZ_RUNS) -artifact_prefix=.fuzz/bad-frame- .fuzz/frames tests/fuzz/frame_corpus
	$(BIN)/python -m tests.fuzz -runs=$(FUZZ_RUNS) -artifact_prefix=.fuzz/bad- .fuzz tests/fuzz/corpus

clean:  ## remove the environment and caches, keep runs and data
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist src/*.egg-info
