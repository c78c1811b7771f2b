#!/usr/bin/env bash
# Lists what an image holds, without a container engine. See usage() below.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

usage() {
  cat <<'TEXT'
usage: deploy/docker/list_contents.sh IMAGE [BIN_DIR]

Prints each file of an image with its size in bytes, links and folders left out, and the sum. IMAGE is a target of
deploy/docker/Dockerfile: coordinator, worker, or worker-cuda (there: what comes on top of NVIDIA's base image).
The files are laid out by stage.sh, as the image's are, from the programs in BIN_DIR (default: build/release/bin) and
this machine's libraries.

example: deploy/docker/list_contents.sh worker
TEXT
}

fail() {
  echo "list_contents.sh: error: $1" >&2
  exit "${2:-1}"
}

# The command of an image's target in the Dockerfile that lays out its root; a target without one is its parent's.
arguments_of() {
  sed -n "s|^RUN deploy/docker/stage.sh \(.*\)build/release/bin /stage/$1 |\1|p" deploy/docker/Dockerfile
}

case ${1:-} in
  -h | --help)
    usage
    exit 0
    ;;
  "") fail "want an image; see --help" 2 ;;
esac
image=$1
bin=${2:-build/release/bin}
read -r -a arguments <<< "$(arguments_of "$image")"
[[ ${#arguments[@]} -gt 0 ]] || fail "the Dockerfile stages no image '$image'" 2

folder=$(mktemp -d)
trap 'rm -rf --one-file-system "$folder"' EXIT
flags=()
while [[ ${arguments[0]} == --* ]]; do
  flags+=("${arguments[0]}")
  arguments=("${arguments[@]:1}")
done
deploy/docker/stage.sh "${flags[@]}" "$bin" "$folder/root" "${arguments[@]}"
find "$folder/root" -type f -printf '%s\t/%P\n' | sort -k 2 \
  | awk -F '\t' '{ printf "%12d  %s\n", $1, $2; sum += $1 } END { printf "%12d  in %d files\n", sum, NR }'
