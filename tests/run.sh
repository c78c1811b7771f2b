#!/usr/bin/env bash
# Sets up and runs the test suite. See usage() below.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

usage() {
  cat <<'TEXT'
usage: tests/run.sh [--quick | --nightly | --fuzz SECONDS]

Installs the Debian packages that the tests need (as root, only those missing) and runs, in stages,
stopping at the first that fails:
  deploy tools    kubernetes-validate from PyPI; without it tests of deploy/kubernetes skip themselves
  format          clang-format-16 on every source file
  release         the release build and every test not labelled `nightly`
  asan            tests labelled `asan` under the address and undefined-behaviour sanitizers, and
                  every fuzz target for a few seconds
  tsan            tests labelled `tsan` under the thread sanitizer
  clang-tidy      the sources that differ from main (on main itself: those of the last commit)

  --quick         only the stages format and release
  --nightly       also: tests labelled `nightly` or `asan_nightly`, clang-tidy on the whole tree, a minute of every
                  fuzz target, and tests/clean_root.sh (needs root and debootstrap)
  --fuzz SECONDS  only: every fuzz target for SECONDS
  --help          this text

environment: WEFT_GOLDEN_DIR    folder of golden results; tests that need it are skipped without it
             WEFT_TIDY_BASE     commit against which clang-tidy finds what changed
             WEFT_JOBS          parallel jobs (default: number of processors)
TEXT
}

fail() {
  echo "run.sh: error: $1" >&2
  exit "${2:-1}"
}

jobs=${WEFT_JOBS:-$(nproc)}
mode=default
fuzz_seconds=5
case ${1:-} in
  "") ;;
  --quick) mode=quick ;;
  --nightly)
    mode=nightly
    fuzz_seconds=60
    ;;
  --fuzz)
    mode=fuzz
    fuzz_seconds=${2:-}
    [[ $fuzz_seconds =~ ^[1-9][0-9]*$ ]] || fail "--fuzz needs a number of seconds" 2
    shift
    ;;
  -h | --help)
    usage
    exit 0
    ;;
  *) fail "unknown argument '$1'; see --help" 2 ;;
esac
[[ $# -le 1 ]] || fail "unknown argument '$2'; see --help" 2

# --- stages and the closing report -------------------------------------------------------------

current_stage=""
report=""
release_log=build/release/ctest.log

# stage NAME COMMAND...: runs the command; with set -e the script ends where it fails.
stage() {
  current_stage=$1
  local start=$SECONDS
  shift
  echo "=== $current_stage"
  "$@"
  report+=$(printf '%-24s %5d s' "$current_stage" $((SECONDS - start)))$'\n'
  current_stage=""
}

# The last lines of the output are those of the release tests, whatever ran after them.
closing_report() {
  local status=$?
  [[ -z $report ]] || printf '=== stages passed\n%s%-24s %5d s\n' "$report" total "$SECONDS"
  [[ -z $current_stage ]] || echo "=== FAILED in stage '$current_stage' after $SECONDS s"
  if [[ -f $release_log ]]; then
    sed -n '/tests passed,/,$p' "$release_log"
  fi
  exit "$status"
}

# --- what the stages do ------------------------------------------------------------------------

packages() {
  deploy/install_packages.sh deploy/packages-build.txt deploy/packages-image.txt deploy/packages-test.txt
}

# Installs in .venv, which it makes where there is none; arguments are pip's.
from_pypi() {
  [[ -x .venv/bin/python ]] || /usr/bin/python3 -m venv .venv || fail "python3 -m venv .venv failed"
  .venv/bin/pip install --quiet --disable-pip-version-check "$@"
}

# Tools from PyPI for the nightly tests that compare with an evaluation in Python.
python_tools() {
  from_pypi -r tests/requirements.txt
}

# Schemas for the tests of deploy/. Only the nightly run fails without them; else those tests skip themselves.
deploy_tools() {
  from_pypi --retries 1 --timeout 20 -r tests/requirements-deploy.txt && return
  [[ $mode != nightly ]] || return 1
  echo "warning: no kubernetes-validate from PyPI; the schemas of deploy/kubernetes are not checked" >&2
}

# Without PyPI Debian's clang-tidy-16 takes its place.
tidy_tool() {
  from_pypi --retries 1 --timeout 20 -r tests/requirements-tidy.txt && return
  echo "warning: no clang-tidy from PyPI; Debian's clang-tidy-16 is used" >&2
}

source_files() {
  git ls-files -- '*.cc' '*.h' '*.inc'
}

check_format() {
  source_files | xargs -r -n 50 -P "$jobs" clang-format-16 --dry-run --Werror
}

build() {
  local preset=$1
  shift
  # The kernels take minutes to compile under a sanitizer; see common/cpu/kernels.
  local kernels=OFF
  [[ $mode != nightly || $preset != asan ]] || kernels=ON
  cmake --preset "$preset" -DWEFT_TESTS=ON -DWEFT_SANITIZE_KERNELS="$kernels" > "build/configure-$preset.log" 2>&1 || {
    cat "build/configure-$preset.log" >&2
    return 1
  }
  cmake --build --preset "$preset" -j "$jobs" "$@"
}

test_release() {
  local without=(-LE '^nightly$')
  [[ $mode != nightly ]] || without=()
  ctest --preset release -j "$jobs" --no-tests=error "${without[@]}" 2>&1 | tee "$release_log"
}

# Tests that skipped themselves: printed and counted; with the golden folder at hand an unlisted one fails.
check_skips() {
  /usr/bin/python3 tests/tidy/check_skips.py build/release/Testing/Temporary/LastTest.log tests/allowed_skips.txt
}

test_labelled() {
  ctest --preset "$1" -j "$jobs" --no-tests=error -L "^$2\$"
}

# Each target works on a copy of its corpus; what it finds stays in build/asan/fuzz/TARGET-found.
fuzz_all() {
  local name corpus work count=0
  while read -r name corpus; do
    work=$(mktemp -d)
    mkdir -p "build/asan/fuzz/$name-found"
    echo "fuzz: $name for $fuzz_seconds s"
    "build/asan/fuzz/$name" -max_total_time="$fuzz_seconds" -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 \
      -verbosity=0 -artifact_prefix="build/asan/fuzz/$name-found/" "$work" "$corpus" > "build/asan/fuzz/$name.log" 2>&1 || {
      cat "build/asan/fuzz/$name.log" >&2
      return 1
    }
    grep '^stat::number_of_executed_units' "build/asan/fuzz/$name.log"
    rm -rf "$work"
    count=$((count + 1))
  done < build/asan/fuzz/targets.txt
  [[ $count -gt 0 ]] || fail "no fuzz target was built"
}

# Sources that differ from the base; a changed header stands for the source beside it.
changed_sources() {
  local base=${WEFT_TIDY_BASE:-}
  if [[ -z $base ]]; then
    base=$(git merge-base HEAD main 2> /dev/null || git merge-base HEAD origin/main 2> /dev/null || true)
    if [[ -z $base || $base == $(git rev-parse HEAD) ]]; then
      base=$(git rev-parse -q --verify HEAD~1 || git hash-object -t tree /dev/null)
    fi
  fi
  { git diff --name-only --diff-filter=d "$base" -- && git ls-files --others --exclude-standard; } \
    | sed -n -e 's/\.h$/.cc/p' -e '/\.cc$/p' | sort -u
}

# Runs clang-tidy on the sources named on standard input that the release build compiles.
run_clang_tidy() {
  WEFT_JOBS=$jobs /usr/bin/python3 tests/tidy/run_clang_tidy.py build/release
}

tidy_changed() {
  tidy_tool
  changed_sources | run_clang_tidy
}

tidy_all() {
  tidy_tool
  source_files | sed -n '/\.cc$/p' | run_clang_tidy
}

# --- the suite ---------------------------------------------------------------------------------

mkdir -p build
rm -f "$release_log"
trap closing_report EXIT
trap 'exit 130' INT TERM

stage "packages" packages
if [[ $mode == fuzz ]]; then
  stage "fuzz build" build asan --target weft_fuzzers
  stage "fuzz" fuzz_all
  exit 0
fi

[[ $mode != nightly ]] || stage "python tools" python_tools
stage "deploy tools" deploy_tools
stage "format" check_format
stage "release build" build release
stage "release tests" test_release
stage "skipped tests" check_skips
[[ $mode != quick ]] || exit 0

stage "asan build" build asan --target weft_asan_tests weft_fuzzers
stage "asan tests" test_labelled asan asan
stage "fuzz" fuzz_all
stage "tsan build" build tsan --target weft_tsan_tests
stage "tsan tests" test_labelled tsan tsan
if [[ $mode == nightly ]]; then
  stage "asan nightly build" build asan --target weft_asan_nightly_tests
  stage "asan nightly tests" test_labelled asan asan_nightly
  stage "clang-tidy, whole tree" tidy_all
  stage "clean root" tests/clean_root.sh
else
  stage "clang-tidy, changed" tidy_changed
fi
