# Needs make, a POSIX shell, coreutils and Python 3.11 or 3.12; everything else is installed into .venv.
# All paths are relative, so that a checkout may lie in a folder with spaces.
.DEFAULT_GOAL := help
SHELL := /bin/sh

PYTHON_CANDIDATES := python3.12 python3.11 python3 python
VENV := .venv
PY := $(VENV)/bin/python
PIP_INSTALL := $(PY) -m pip install --disable-pip-version-check --no-input --quiet
PIP_LOCKED := $(PIP_INSTALL) --no-deps --require-hashes --only-binary :all: --no-compile
COMPILE_LOCK := uv pip compile pyproject.toml --quiet --universal --python-version 3.11 \
	--generate-hashes --no-emit-index-url --custom-compile-command "make lock"

.PHONY: help install install-train install-gpu gpu-check demo rooms voices test test-all lint format schemas lock clean

help: ## say what the targets do
	@echo "minuted: the minutes of a meeting, while it is still going on"
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1|\2/p' Makefile | while IFS='|' read -r target text; do \
		printf '%-22s %s\n' "$$target" "$$text"; done

# The environment is stamped with what it was made from: the lock, and the folder, since scripts in it hold
# absolute paths. The stamp is written last, so that an interrupted install is begun anew.
define INSTALL
set -eu
want="$$(cat locks/default.txt | cksum) $$(pwd)"
have="$$(cat $(VENV)/minuted-lock 2>/dev/null || true)"
if [ "$$want" != "$$have" ] || ! $(PY) -c '' 2>/dev/null; then
	found=''
	python=''
	for name in $(PYTHON_CANDIDATES); do
		if version="$$("$$name" -c 'import sys; print("%d.%d.%d" % sys.version_info[:3])' 2>/dev/null)"; then
			case "$$version" in
			3.11.*|3.12.*)
				if "$$name" -c 'import ensurepip, venv' 2>/dev/null; then
					python="$$name"
					break
				fi
				found="$$found, $$name $$version without its venv module (Debian: python3-venv)" ;;
			*) found="$$found, $$name $$version" ;;
			esac
		fi
	done
	if [ -z "$$python" ]; then
		found="$${found:-, no Python that runs}"
		echo "minuted needs Python 3.11 or 3.12 on the PATH; found $${found#, }" >&2
		exit 2
	fi
	echo "minuted: installing into $(VENV) with $$python $$version (about a minute)" >&2
	"$$python" -m venv --clear $(VENV)
	$(PIP_LOCKED) -r locks/default.txt
	$(PY) -m compileall -q -j 0 $(VENV)/lib >/dev/null 2>&1 || true
	echo "$$want" > $(VENV)/minuted-lock
fi
want="$$(cat pyproject.toml | cksum)"
have="$$(cat $(VENV)/minuted-project 2>/dev/null || true)"
if [ "$$want" != "$$have" ]; then
	$(PIP_INSTALL) --no-deps --no-build-isolation -e .
	echo "$$want" > $(VENV)/minuted-project
fi
endef
export INSTALL

# What comes on top, in versions that the default lock allows. Neither lock carries onnxruntime: it and
# onnxruntime-gpu overwrite each other's files, so that the gpu environment must end with the latter alone.
define INSTALL_EXTRA
set -eu
want="$$(cat locks/$$extra.txt | cksum)"
have="$$(cat $(VENV)/minuted-$$extra 2>/dev/null || true)"
if [ "$$want" != "$$have" ]; then
	echo "minuted: adding the $$extra extra with torch to $(VENV) (several GB, some minutes)" >&2
	if [ "$$extra" = gpu ]; then
		$(PY) -m pip uninstall --disable-pip-version-check --quiet --yes onnxruntime
	fi
	$(PIP_INSTALL) --no-deps --require-hashes --no-build-isolation -r locks/$$extra.txt
	echo "$$want" > $(VENV)/minuted-$$extra
fi
endef
export INSTALL_EXTRA

install: ## make .venv with everything but torch
	@eval "$$INSTALL"

install-train: install ## add torch and the training tools to .venv
	@extra=train; eval "$$INSTALL_EXTRA"

install-gpu: install ## add torch and the CUDA build of ONNX Runtime to .venv
	@extra=gpu; eval "$$INSTALL_EXTRA"

demo: install ## play the sample meeting and watch its minutes appear
	@$(VENV)/bin/minuted demo

rooms: install ## build the made-up meetings into build/rooms (ARGS="--form all" for every form)
	@$(PY) -m devices.rooms $(ARGS)

voices: install ## speak the scripts of rooms whose words have changed (needs the program flite)
	@test -x build/voices/bin/python || $(PY) -m venv build/voices
	@build/voices/bin/python -m pip install --disable-pip-version-check --no-input --quiet \
		-r devices/rooms/voices.txt
	@PYTHONPATH=. build/voices/bin/python -m devices.rooms.speak $(ARGS)

test: install ## run all tests of the default install
	@$(PY) -m pytest -m "not train"

test-all: install-train ## run all tests, those that need torch included
	@$(PY) -m pytest

# The machine's own Python, not .venv: a machine with a GPU may have torch and nothing else of ours.
gpu-check: ## check and time the attention kernels on this machine's GPU (its own Python needs torch)
	@$${PYTHON:-python3} kernels/gpu_check.py

lint: install ## check style and types
	@$(PY) -m ruff check .
	@$(PY) -m ruff format --check .
	@$(PY) -m mypy

format: install ## put the code into its canonical layout
	@$(PY) -m ruff check --fix .
	@$(PY) -m ruff format .

schemas: install ## write JSON Schema and AsyncAPI from the message models
	@$(PY) -m contracts.schemas

lock: ## resolve the dependencies anew (needs uv)
	@$(COMPILE_LOCK) --extra dev --output-file locks/default.txt
	@for extra in train gpu; do \
		$(COMPILE_LOCK) --extra dev --extra $$extra --constraint locks/default.txt \
			--no-emit-package onnxruntime --output-file locks/$$extra.txt; done

clean: ## remove everything that was made here, .venv included
	@rm -rf $(VENV) .kafka .minuted .mypy_cache .pytest_cache .ruff_cache .hypothesis build out *.egg-info
