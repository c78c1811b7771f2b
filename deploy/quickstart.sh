#!/usr/bin/env bash
# From a fresh Debian 12 to generated text in one command. See usage() below.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly MODEL=models/shakespeare-q8_0.gguf
readonly WEFT=build/release/bin/weft

usage() {
  cat <<'TEXT'
usage: deploy/quickstart.sh [-p PROMPT] [-n TOKENS]
       deploy/quickstart.sh --serve [--port PORT]

Installs the Debian packages that the build needs (as root, only those missing), builds weft into
build/release/bin, and lets the bundled demo model continue a prompt on a coordinator with two local
workers. Running it again is quick: nothing is installed or compiled twice.

  -p PROMPT   text to continue (default: ROMEO:)
  -n TOKENS   how many tokens to generate (default: 64)
  --serve     serve the demo model on two local workers by an OpenAI-compatible API instead, until
              Ctrl-C
  --port P    where the API listens (default: 8080); health and metrics are on the next port
  --help      this text

example: deploy/quickstart.sh -p "To be, or not" -n 100
TEXT
}

fail() {
  echo "quickstart: error: $1" >&2
  exit "${2:-1}"
}

step() {
  echo "==> $1 (${SECONDS} s)" >&2
}

prompt="ROMEO:"
serve=0
port=8080
tokens=64
while [[ $# -gt 0 ]]; do
  case $1 in
    -p | -n | --port)
      [[ $# -ge 2 ]] || fail "$1 needs a value; see --help" 2
      case $1 in
        -p) prompt=$2 ;;
        -n) tokens=$2 ;;
        *) port=$2 ;;
      esac
      shift 2
      ;;
    --serve)
      serve=1
      shift
      ;;
    -h | --help)
      usage
      exit 0
      ;;
    *) fail "unknown argument '$1'; see --help" 2 ;;
  esac
done

step "packages"
deploy/install_packages.sh deploy/packages-build.txt >&2

# The tests need more packages, and the preset would ask for them anew each time. A folder that tests/run.sh has
# configured keeps them.
tests=OFF
if [[ -f build/release/build.ninja ]] && grep -q '^WEFT_TESTS:BOOL=ON$' build/release/CMakeCache.txt; then tests=ON; fi
configure=(--preset release "-DWEFT_TESTS=$tests")
step "configure"
mkdir -p build
cmake "${configure[@]}" > build/quickstart-configure.log 2>&1 || {
  cat build/quickstart-configure.log >&2
  fail "configuring failed"
}

step "build"
cmake --build --preset release --target weft weft-worker >&2 || fail "the build failed"

[[ -r $MODEL ]] || fail "the demo model $MODEL is missing from this checkout"
if ((serve)); then
  step "serve: $WEFT serve -m $MODEL --local-workers 2 --port $port"
  exec "$WEFT" serve -m "$MODEL" --local-workers 2 --port "$port"
fi
step "run: $WEFT run -m $MODEL --local-workers 2 -p '$prompt' -n $tokens"
exec "$WEFT" run -m "$MODEL" --local-workers 2 -p "$prompt" -n "$tokens"
