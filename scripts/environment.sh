# Sourced by the other scripts, never run: makes the environment .venv ready, quickly if nothing has changed.
# Afterwards the working directory is the project's folder and .venv/bin comes first on PATH.
# shellcheck shell=bash

environment_error() {
  printf '%s: %s\n' "$(basename "$0")" "$1" >&2
  exit 3
}

# Prints the first Python 3.11 or later; PYTHON, if set, is the only candidate.
environment_python() {
  local candidate candidates=(python3 python3.11 python3.12 python3.13 python)
  [ -n "${PYTHON:-}" ] && candidates=("$PYTHON")
  for candidate in "${candidates[@]}"; do
    if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
      echo "$candidate"
      return
    fi
  done
  environment_error "needs Python 3.11 or later (tried: ${candidates[*]}); set PYTHON to name another one"
}

# What the environment was made from: it is made ready again when any of this changes.
environment_wanted() {
  cat requirements.lock pyproject.toml | cksum
  pwd
}

environment_make() {
  local python pip_options=(--quiet --no-input --disable-pip-version-check)
  if ! .venv/bin/python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
    python=$(environment_python)
    "$python" -c 'import ensurepip, venv' 2>/dev/null ||
      environment_error "$python cannot make environments; on Debian: apt-get install python3-venv"
    echo "Making .venv with $("$python" --version) …" >&2
    "$python" -m venv --clear .venv || environment_error "$python -m venv failed"
  fi
  echo "Installing the locked versions …" >&2
  .venv/bin/python -m pip install "${pip_options[@]}" --only-binary :all: --requirement requirements.lock ||
    environment_error "the locked packages could not be installed (see above); is the network up?"
  .venv/bin/python -m pip install "${pip_options[@]}" --no-deps --no-build-isolation --editable . ||
    environment_error "mb2fmu itself could not be installed (see above)"
  environment_wanted >.venv/made-from
}

cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 3
if [ ! -x .venv/bin/mb2fmu ] || [ "$(cat .venv/made-from 2>/dev/null)" != "$(environment_wanted)" ]; then
  environment_make
fi
export PATH="$PWD/.venv/bin:$PATH"
