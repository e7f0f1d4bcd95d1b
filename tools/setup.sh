#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# setup.sh [peers [system...]]: Debian packages, then .venv with its Python packages (or .venv-peers/<system>, by default
# of every peer).
# Does nothing, in a fraction of a second, where both are in place. PYTHON=... chooses the interpreter.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export DEBIAN_FRONTEND=noninteractive PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore

fail() {
  echo "setup: $*" >&2
  exit 1
}

debian_packages() {
  if ! command -v dpkg-query >/dev/null; then
    echo "setup: not a Debian system; the equivalents of tools/debian-packages.txt are taken to be there" >&2
    return
  fi
  local wanted installed missing
  wanted=$(sed 's/#.*//' tools/debian-packages.txt | xargs -n1 | sort)
  # shellcheck disable=SC2086
  # dpkg-query fails where it does not know a package, which is then a missing one.
  installed=$({ dpkg-query -W -f='${db:Status-Abbrev} ${Package}\n' $wanted 2>/dev/null || true; } |
    awk '$1 == "ii" {print $2}' | sort -u)
  missing=$(comm -23 <(echo "$wanted") <(echo "$installed") | xargs)
  [ -n "$missing" ] || return 0
  if [ "$(id -u)" != 0 ]; then
    fail "these Debian packages are missing, and only root can install them: $missing
setup: run this once, then again what you ran:  sudo apt-get install --no-install-recommends $missing"
  fi
  echo "setup: installing $missing"
  apt-get -q -o DPkg::Lock::Timeout=300 update
  # shellcheck disable=SC2086
  apt-get -q -o DPkg::Lock::Timeout=300 install -y --no-install-recommends $missing
}

# A usable interpreter has its headers (for the extension module) and can make a virtual environment with pip.
usable() {
  "$1" - <<'PY' 2>/dev/null
import ensurepip, os, sys, sysconfig, venv
sys.exit(not (sys.version_info >= (3, 11) and os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h"))))
PY
}

choose_python() {
  local candidate
  for candidate in ${PYTHON:-python3.11 python3 /usr/bin/python3.11 /usr/bin/python3}; do
    if command -v "$candidate" >/dev/null && usable "$candidate"; then
      echo "$candidate"
      return
    fi
  done
  fail "no Python of at least 3.11 with headers, venv and pip among: ${PYTHON:-python3.11 python3 /usr/bin/python3.11}"
}

# environment <folder> <requirements>: its stamp holds what it was made from, so a changed list installs again.
environment() {
  local folder=$1 requirements=$2 python key
  key="${PYTHON:-any} $(sha256sum <"$requirements")"
  if [ "$(cat "$folder/.stamp" 2>/dev/null)" = "$key" ] && "$folder/bin/python" -c '' 2>/dev/null; then
    return
  fi
  python=$(choose_python)
  if ! usable "$folder/bin/python" || [ "$(cut -d' ' -f1 "$folder/.stamp" 2>/dev/null)" != "${PYTHON:-any}" ]; then
    echo "setup: making $folder with $python"
    "$python" -m venv --clear "$folder"
  fi
  "$folder/bin/python" -m pip install -q -r "$requirements"
  echo '*' >"$folder/.gitignore"
  echo "$key" >"$folder/.stamp"
}

# The package is imported from the checkout: a path file stands in for an installation.
path_file() {
  local site
  for site in .venv/lib/python3*/site-packages; do
    if [ "$(cat "$site/undertow.pth" 2>/dev/null)" != "$PWD/python" ]; then
      echo "$PWD/python" >"$site/undertow.pth"
    fi
  done
}

debian_packages
if [ "${1:-}" = peers ]; then
  shift
  for list in tools/peers/*.txt; do
    system=$(basename "$list" .txt)
    [[ $# = 0 || " $* " == *" $system "* ]] || continue
    environment ".venv-peers/$system" "$list"
  done
else
  environment .venv tools/requirements.txt
  path_file
fi
