#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# run.sh <cmake> <source> <build> <work> <count_allocations>: installs into a fresh prefix, builds the stranger's
# project against it and looks at the result from outside.
set -euo pipefail
cmake=$1 source=$2 build=$3 work=$4 counter=$5
prefix=$work/prefix

fail() {
  echo "install test: $*" >&2
  exit 1
}

rm -rf "$work"
"$cmake" --install "$build" --prefix "$prefix" >"$work.log" || { cat "$work.log"; fail "cmake --install failed"; }
"$cmake" -S "$source/tests/install/stranger" -B "$work/build" -G Ninja -DCMAKE_PREFIX_PATH="$prefix"
"$cmake" --build "$work/build"
program=$work/build/stranger

# Only the prefix, the C++ library and the C library were read: nothing of the source tree, no private dependency.
headers=$(ninja -C "$work/build" -t deps)
grep -q "$prefix/include/undertow/undertow.h" <<<"$headers" || fail "undertow.h did not come from the prefix"
foreign=$(grep -E "^ +($source/undertow/|.*/(fmt|spdlog|llvm|llvm-c|nanobind)/|.*dnnl)" <<<"$headers" || true)
[ -z "$foreign" ] || fail "an installed header needs $foreign"

# Neither the program nor anything that it loads is Python.
needed=$(readelf -d "$program" && ldd "$program")
grep -q "$prefix/.*libundertow" <<<"$needed" || fail "libundertow is not loaded from the prefix: $needed"
if grep -qi libpython <<<"$needed"; then fail "libpython is loaded: $needed"; fi
if grep -q "not found" <<<"$needed"; then fail "a library is missing: $needed"; fi

"$program" 20
# Allocations do not follow the steps: at most one more for every 100.
allocations() {
  LD_PRELOAD=$counter "$program" "$1" 2>&1 >/dev/null | sed -n 's/^allocations //p'
}
few=$(allocations 1000)
many=$(allocations 10000)
echo "allocations: $few in 100,000 steps, $many in 1,000,000"
[ $((many - few)) -le 9000 ] || fail "allocations grow with the steps"
