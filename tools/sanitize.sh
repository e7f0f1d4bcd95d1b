#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# sanitize.sh <address,undefined|thread> [ctest arguments]: builds build-<first of them> and runs the C++ tests in it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
sanitizers=${1:?which sanitizers: address,undefined or thread}
shift
folder=build-${sanitizers%%,*}

cmake -S . -B "$folder" -G Ninja --no-warn-unused-cli -DCMAKE_BUILD_TYPE=Release -DUNDERTOW_SANITIZE="$sanitizers" \
  -DUNDERTOW_PYTHON=OFF -DUNDERTOW_BENCH=OFF >/dev/null
cmake --build "$folder"

export UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1
export ASAN_OPTIONS=detect_stack_use_after_return=1:detect_leaks=1
export LSAN_OPTIONS=suppressions=$PWD/tools/lsan.supp:print_suppressions=0
export TSAN_OPTIONS=suppressions=$PWD/tools/tsan.supp:second_deadlock_stack=1:halt_on_error=1
# libgomp is not built for ThreadSanitizer, which cannot see how a team begins and ends: one thread a team.
if [ "$sanitizers" = thread ]; then export OMP_NUM_THREADS=1; fi
ctest --test-dir "$folder" --output-on-failure --no-tests=error -j2 "$@"
