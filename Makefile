# Every target does its own set-up; the second call finds the stamps and starts at once.
#   make demo PYTHON=python3.12       another interpreter (3.11 to 3.14)
#   make demo TORCH_INDEX=ADDRESS     an extra package index, such as the CPU wheel index named on PyTorch's
#                                     installation page: saves the several GB of a CUDA build

PYTHON ?= python3
VENV ?= .venv
TORCH_INDEX ?=
WORKERS ?= 2
ARGS ?=

BIN := $(VENV)/bin
QUICK := tests/test_imports.py tests/test_habits.py \
  $(addprefix tests/landscape/,batched_training geometry measures model results surfaces sweep) \
  $(addprefix tests/drift/,config plugins store training analyses/rounds) tests/figures/axes \
  tests/drift/test_conformance.py::test_a_method_has_what_analyses_read[fedadam] \
  tests/drift/partitions/test_partitions.py tests/landscape/datasets/test_datasets.py::test_every_dataset_is_what_it_says[blobs] \
  tests/landscape/models/test_models.py::test_every_model_is_head_after_body[cnn_fmnist] \
  tests/figures/gallery/test_gallery.py::test_every_file_says_what_it_shows_and_needs
PIP := $(BIN)/python -m pip install --disable-pip-version-check $(if $(TORCH_INDEX),--extra-index-url $(TORCH_INDEX)) -c constraints.txt

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help demo explore test test-extras quick hooks torture lint bench docs pictures notebooks clean

help: ## show this list
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/  make \1	\2/p' $(firstword $(MAKEFILE_LIST)) | expand -t 20

demo: $(VENV)/.core ## train four methods on real images, draw seven pictures and two of stored runs, write the report into out/demo/
	$(BIN)/fedscape demo $(ARGS)

explore: $(VENV)/.explore ## explore the demo's runs in the browser, live (make demo trains them; ARGS='RUNS' others)
	@mkdir -p out/demo/runs
	$(BIN)/fedscape explore $(or $(ARGS),out/demo/runs)

test: $(VENV)/.dev ## run the tests but the slow ones (all: make test ARGS='-m ""')
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n $(WORKERS) --dist loadscope --no-loadscope-reorder -m "not slow" $(ARGS)

test-extras: $(VENV)/.dev ## run the tests of Flower, NVFlare, clusters, trackers, transformers, curvlinops, notebooks, axe-core, installed (ARGS=flower: one)
	$(BIN)/python tests/extras.py $(ARGS)

quick: $(VENV)/.dev ## run the tests of one minute: formulas, files, one case per kind of plug-in
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n $(WORKERS) --dist loadscope --no-loadscope-reorder -m "not slow and not seconds" -q $(QUICK) $(ARGS)

hooks: $(VENV)/.dev ## check style, format and types before every commit
	$(BIN)/pre-commit install

torture: $(VENV)/.dev ## kill, damage, fill the disk: every fault, 20 minutes at most (ARGS=--short: one)
	OMP_NUM_THREADS=1 PYTHONPATH=.:tests $(BIN)/python -m torture $(ARGS)

lint: $(VENV)/.dev ## check style, format and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(VENV)/.core ## measure what docs/performance.md shows: make bench ARGS=NAME-OF-THE-MACHINE
	$(BIN)/python -m benchmarks.bench $(ARGS)

docs: $(VENV)/.docs ## build the documentation into build/docs; a warning is an error
	@test -e build/docs/complete || rm -rf build/docs
	@rm -f build/docs/complete
	OMP_NUM_THREADS=1 $(BIN)/python -m sphinx -q -W --keep-going -b html docs build/docs $(ARGS)
	@touch build/docs/complete
	@echo build/docs/index.html

pictures: $(VENV)/.dev ## train the runs of the gallery into out/pictures/ and draw it and the tutorials again (others: CONTRIBUTING.md)
	$(BIN)/python docs/_ext/remake.py $(ARGS)
	PATH="$(abspath $(BIN)):$$PATH" $(BIN)/python docs/_ext/tutorials.py

notebooks: $(VENV)/.notebook ## open the notebooks in JupyterLab (they run in seconds; ARGS='--port 9000' and the like)
	$(BIN)/python notebooks/build.py
	cd notebooks && PATH="$(abspath $(BIN)):$$PATH" $(abspath $(BIN))/python -m jupyterlab $(ARGS)

clean: ## remove the virtual environment, caches and builds; trained runs (runs/, out/) stay
	rm -rf $(VENV) .venv-extras build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.core: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) -e .
	@touch $@

$(VENV)/.dev: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) -e '.[dev,data]'
	@touch $@ $(VENV)/.core

$(VENV)/.explore: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) -e '.[explore,data]'
	@touch $@ $(VENV)/.core

$(VENV)/.docs: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) -e '.[docs]'
	@touch $@ $(VENV)/.core

$(VENV)/.notebook: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) -e '.[notebook,data]'
	@touch $@ $(VENV)/.core
