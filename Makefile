# Two commands do all the set-up on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
# The torch requirement that is installed first. Set your own, e.g. `make demo TORCH=torch==2.11.0`,
# or `TORCH=` to keep the one that the virtual environment already has.
TORCH ?= torch==2.13.0
VENV ?= .venv
BIN := $(VENV)/bin

.PHONY: demo test check-style unit clean

$(VENV)/.installed: pyproject.toml Makefile
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(if $(TORCH),$(BIN)/python -m pip install --quiet "$(TORCH)")
	$(BIN)/python -m pip install --quiet --editable ".[trials,dev]"
	touch $@

demo: $(VENV)/.installed  ## the main job end to end on CPU processes
	$(BIN)/autotune tune --model demo --cluster local --space demo --seq-len 64 --global-batch-size 16 --precision fp32 --trials 3 --top 5

test: check-style unit  ## all that a change must pass

check-style: $(VENV)/.installed
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/codespell autotune tests docs search_spaces README.md CHANGELOG.md CONTRIBUTING.md

unit: $(VENV)/.installed
	$(BIN)/pytest -n 2 --dist loadgroup

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
