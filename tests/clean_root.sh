#!/usr/bin/env bash
# Proves the two commands of README.md on a bare Debian 12. See usage() below.
set -euo pipefail
repository=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

usage() {
  cat <<'TEXT'
usage: tests/clean_root.sh [--folder DIR] [--keep] [--quickstart-only] [--ccache DIR]
                           [-- ARGUMENTS of tests/run.sh]

Makes a bare Debian 12 root with debootstrap in a new folder, clones the committed state of this
checkout into it, runs deploy/quickstart.sh (twice) and tests/run.sh there, and prints how long each
took. The mirror, its keys and its proxy are those of this machine's apt. Needs root and debootstrap.

  --folder DIR        make the root under DIR (default: $TMPDIR or /tmp); about 5 GB
  --keep              do not delete the root afterwards
  --quickstart-only   leave tests/run.sh out
  --ccache DIR        let the root use this compiler cache: quick where this machine has built the same state, but what
                      the compiler printed then is not seen again
TEXT
}

fail() {
  echo "clean_root: error: $1" >&2
  exit 1
}

# The machine's archive that carries Debian 12, as debootstrap wants it.
find_mirror() {
  apt-get indextargets --format '$(SITE) $(RELEASE)' 'Created-By: Packages' \
    | sed -n 's|/* bookworm$||p' | head -n 1
}

# What the new root needs to reach the same archive: sources, keys, passwords, and apt's own network settings.
carry_apt_configuration() {
  local root=$1 entry
  rm -f "$root/etc/apt/sources.list"
  for entry in sources.list sources.list.d trusted.gpg trusted.gpg.d keyrings auth.conf auth.conf.d; do
    [[ ! -e /etc/apt/$entry ]] || cp -a "/etc/apt/$entry" "$root/etc/apt/"
  done
  cp -a /usr/share/keyrings/. "$root/usr/share/keyrings/"
  apt-config dump | grep -E '^Acquire::(http|https|ftp|Check-|Retries|ForceIP|AllowInsecure)' \
    > "$root/etc/apt/apt.conf.d/90machine" || true
  cp -L /etc/resolv.conf "$root/etc/resolv.conf" 2> /dev/null || true
  cp -L /etc/hosts "$root/etc/hosts" 2> /dev/null || true
  if [[ -d /usr/local/share/ca-certificates ]]; then
    mkdir -p "$root/usr/local/share"
    cp -a /usr/local/share/ca-certificates "$root/usr/local/share/"
  fi
}

# Runs a command in the root, in mount and process namespaces of its own: what it mounts and starts is gone when it
# ends, however it ends, and deleting the root can never reach into this machine's /dev or /proc.
in_root() {
  local root=$1
  shift
  local variables=(PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root "TERM=${TERM:-dumb}")
  local name
  for name in http_proxy https_proxy no_proxy HTTP_PROXY HTTPS_PROXY NO_PROXY; do
    [[ -z ${!name:-} ]] || variables+=("$name=${!name}")
  done
  unshare --mount --propagation private --pid --fork --kill-child bash -c '
    set -e
    root=$1
    shift
    # A root that is no mount would have no mount namespaces below it.
    mount --bind "$root" "$root"
    mount -t proc proc "$root/proc"
    mount -t sysfs -o ro sysfs "$root/sys"
    mount --bind /dev "$root/dev"
    mount -t devpts -o newinstance,ptmxmode=0666 devpts "$root/dev/pts"
    mount -t tmpfs tmpfs "$root/dev/shm"
    cache=$1
    shift
    if [[ -n $cache ]]; then
      mkdir -p "$root/root/.cache/ccache"
      mount --bind "$cache" "$root/root/.cache/ccache"
    fi
    exec chroot "$root" env -i "$@"' in_root "$root" "$ccache" "${variables[@]}" bash -c "$@" < /dev/null
}

# timed NAME COMMAND...: runs it and keeps the seconds for the closing report.
report=""
timed() {
  local name=$1 start=$SECONDS
  shift
  echo "=== $name"
  "$@" || return
  report+=$(printf '%-28s %5d s' "$name" $((SECONDS - start)))$'\n'
}

folder=${TMPDIR:-/tmp}
keep=false
tests=true
ccache=""
arguments=()
while [[ $# -gt 0 ]]; do
  case $1 in
    --folder)
      [[ $# -ge 2 ]] || fail "--folder needs a value"
      folder=$2
      shift
      ;;
    --ccache)
      [[ $# -ge 2 && -d $2 ]] || fail "--ccache needs a folder"
      ccache=$(cd "$2" && pwd)
      shift
      ;;
    --keep) keep=true ;;
    --quickstart-only) tests=false ;;
    -h | --help)
      usage
      exit 0
      ;;
    --)
      shift
      arguments=("$@")
      break
      ;;
    *) fail "unknown argument '$1'; see --help" ;;
  esac
  shift
done

[[ $(id -u) -eq 0 ]] || fail "needs root"
command -v debootstrap > /dev/null || fail "needs the package debootstrap"
mirror=$(find_mirror)
[[ -n $mirror ]] || fail "this machine's apt knows no archive of Debian 12 (bookworm)"

root=$(mktemp -d "$folder/weft-clean-root.XXXXXX")
clean_up() {
  local status=$?
  if [[ $keep == true ]]; then
    echo "kept: $root"
  else
    rm -rf --one-file-system "$root"
  fi
  [[ -z $report ]] || printf '=== times in a bare root\n%s' "$report"
  [[ $status -eq 0 ]] || echo "clean_root: FAILED" >&2
  exit "$status"
}
trap clean_up EXIT
trap 'exit 130' INT TERM

timed "debootstrap" debootstrap --variant=minbase --include=ca-certificates bookworm "$root" "$mirror" \
  > "$root.log" 2>&1 || {
  tail -n 20 "$root.log" >&2
  rm -f "$root.log"
  fail "debootstrap failed"
}
rm -f "$root.log"
carry_apt_configuration "$root"
in_root "$root" 'update-ca-certificates > /dev/null'
git clone -q --no-hardlinks "$repository" "$root/weft"

timed "deploy/quickstart.sh" in_root "$root" 'cd /weft && deploy/quickstart.sh'
timed "deploy/quickstart.sh again" in_root "$root" 'cd /weft && deploy/quickstart.sh'
if [[ $tests == true ]]; then
  timed "tests/run.sh" in_root "$root" 'cd /weft && tests/run.sh "$@"' run.sh "${arguments[@]}"
fi
