#!/usr/bin/env bash
# usage: deploy/install_packages.sh LIST...
# Installs the Debian packages named in the LIST files (one a line, # starts a comment) that are not installed yet.
# Calls apt only when something is missing, so that a machine which has everything needs neither root nor a mirror.
set -euo pipefail

wanted=$(sed -e 's/#.*//' -e 's/[[:space:]]*$//' -e '/^$/d' "$@")

command -v dpkg-query > /dev/null || {
  echo "error: this is not a Debian system; install these yourself:" $wanted >&2
  exit 1
}

missing=()
for package in $wanted; do
  status=$(dpkg-query -W -f='${db:Status-Status}' "$package" 2> /dev/null || true)
  [[ $status == installed ]] || missing+=("$package")
done
[[ ${#missing[@]} -gt 0 ]] || exit 0

echo "missing packages: ${missing[*]}"
if [[ $(id -u) -ne 0 ]]; then
  echo "error: installing them needs root; run: apt-get install --no-install-recommends ${missing[*]}" >&2
  exit 1
fi
export DEBIAN_FRONTEND=noninteractive
apt-get -qq -o Acquire::Retries=3 update
apt-get -qq -o Acquire::Retries=3 -o Dpkg::Use-Pty=0 install -y --no-install-recommends "${missing[@]}"
