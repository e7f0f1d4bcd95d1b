# SPDX-License-Identifier: Apache-2.0
# The front door: `make demo` and `make test` do all the set-up that they need. docs/building.md says more.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := build
.PHONY: setup build demo test test-interop sanitize fuzz bench bench-peers format check clean
# Targets share build/ and .venv; ninja and ctest run things side by side by themselves.
.NOTPARALLEL:

PYTHON_VENV := .venv/bin/python
CXX_FILES = git ls-files --cached --others --exclude-standard '*.cpp' '*.h' '*.c'
CMAKE_FLAGS ?=
FUZZ_SECONDS ?= 60

setup:
	@tools/setup.sh

# Configures once for a given set of arguments; afterwards ninja runs CMake by itself when its files change.
build: setup
	@args=(-G Ninja -DCMAKE_BUILD_TYPE=Release -DUNDERTOW_PYTHON=ON -DPython_EXECUTABLE="$$PWD/$(PYTHON_VENV)" \
	  -Dnanobind_DIR="$$($(PYTHON_VENV) -m nanobind --cmake_dir)" $(CMAKE_FLAGS)); \
	if [ ! -f build/build.ninja ] || [ "$$(cat build/.configured 2>/dev/null)" != "$${args[*]}" ]; then \
	  cmake -S . -B build --no-warn-unused-cli "$${args[@]}"; \
	  echo "$${args[*]}" > build/.configured; \
	fi
	@cmake --build build

demo: build
	@$(PYTHON_VENV) examples/fashion_mnist.py

# Both runners always run; the target fails when either does.
test: build
	@failed=0; \
	(cd build && ctest --output-on-failure --no-tests=error -j2) || failed=1; \
	if [ -d tests/python ]; then $(PYTHON_VENV) -m pytest tests/python -q || failed=1; fi; \
	exit $$failed

# Against the real MindSpore, in an environment of its own.
test-interop: build
	@tools/setup.sh peers mindspore
	@$(PYTHON_VENV) -m pytest tests/interop -q -o faulthandler_timeout=1800

# The C++ tests once more in builds of their own: address and undefined behaviour, then threads.
sanitize: setup
	@failed=0; \
	tools/sanitize.sh address,undefined || failed=1; \
	tools/sanitize.sh thread || failed=1; \
	exit $$failed

fuzz: setup
	@CC=clang-19 CXX=clang++-19 cmake -S . -B build-fuzz -G Ninja -DUNDERTOW_FUZZ=ON \
	  -DUNDERTOW_FUZZ_SECONDS=$(FUZZ_SECONDS) >/dev/null
	@cmake --build build-fuzz --target fuzz
	@ctest --test-dir build-fuzz -L fuzz --output-on-failure --no-tests=error -j2

bench: build
	@$(PYTHON_VENV) bench/run.py

bench-peers:
	@tools/setup.sh peers

format: setup
	@$(CXX_FILES) | xargs -r clang-format-19 -i
	@.venv/bin/ruff format -q .
	@.venv/bin/ruff check -q --fix-only .

check: build
	@failed=0; \
	$(CXX_FILES) | xargs -r clang-format-19 --dry-run -Werror || failed=1; \
	.venv/bin/ruff format --check . || failed=1; \
	.venv/bin/ruff check . || failed=1; \
	$(PYTHON_VENV) tools/check_includes.py || failed=1; \
	$(PYTHON_VENV) tools/check_sources.py || failed=1; \
	$(PYTHON_VENV) tools/tidy.py build || failed=1; \
	exit $$failed

clean:
	rm -rf build build-address build-thread build-fuzz python/undertow/_core*.so .pytest_cache .ruff_cache
	find python tests bench examples tools -name __pycache__ -type d -prune -exec rm -rf {} +
