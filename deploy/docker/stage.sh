#!/usr/bin/env bash
# Lays out what an image of weft holds. See usage() below.
set -euo pipefail

readonly USER_ID=10001
# Where Debian's loader looks without being told.
readonly SYSTEM_LIBRARIES=/usr/lib/$(uname -m)-linux-gnu
readonly OWN_LIBRARIES=/usr/lib/weft
# What the base image of --onto-base has itself, and newer: two of these in one process do not mix.
readonly BASE_LIBRARIES='^(ld-linux.*|lib(c|m|dl|rt|pthread|resolv|util|anl|nss_[a-z]+|gcc_s|stdc\+\+))\.so'

usage() {
  cat <<TEXT
usage: deploy/docker/stage.sh [--onto-base] BIN_DIR FOLDER PROGRAM...

Puts PROGRAMs (weft, weft-worker) of BIN_DIR into the new folder FOLDER as the root of a file system, with the
shared libraries that they need and those that UCX opens by itself, the user weft ($USER_ID), a program for health checks
(busybox, as wget) and nothing else. The Dockerfile makes its images of this folder; list_contents.sh lists it.

  --onto-base   leave out what a base image with glibc and libstdc++ has; libraries go to
                $OWN_LIBRARIES, which LD_LIBRARY_PATH then has to name with its folders ucx and libibverbs
TEXT
}

fail() {
  echo "stage.sh: error: $1" >&2
  exit "${2:-1}"
}

# The shared libraries of files, a path a line; fails where one is missing.
libraries_of() {
  local found
  found=$(ldd "$@" 2> /dev/null) || fail "ldd failed on: $*"
  ! grep -q 'not found' <<< "$found" || fail "a library is missing: $(grep 'not found' <<< "$found" | head -n 1)"
  sed -n -e 's/.*=> \(\/[^ ]*\) (.*/\1/p' -e 's/^[[:space:]]*\(\/[^ ]*ld-linux[^ ]*\) (.*/\1/p' <<< "$found" | sort -u
}

# What UCX loads at run time: its transports, and the drivers of RDMA cards. A path a line.
opened_by_ucx() {
  find "$SYSTEM_LIBRARIES/ucx" -name 'libuct_*.so.0' 2> /dev/null || true
  find "$SYSTEM_LIBRARIES/libibverbs" -name '*.so' 2> /dev/null || true
}

# place FILE: a library as a file of its own name, and FILE's name as a link to it, both where they lie on this machine. A
# library that has two names must stay one file: the loader would take two files for two libraries.
place() {
  local file=$1 real directory
  real=$(readlink -f "$file")
  directory=${real%/*}
  [[ $directory == "$SYSTEM_LIBRARIES" || $directory == "$SYSTEM_LIBRARIES"/* ]] \
    || fail "$file is not of this system's libraries: $real"
  install -D -m 0755 "$real" "$root$libraries${real#"$SYSTEM_LIBRARIES"}"
  directory=$(readlink -f "${file%/*}")
  if [[ $directory/${file##*/} != "$real" ]]; then
    mkdir -p "$root$libraries${directory#"$SYSTEM_LIBRARIES"}"
    ln -sfr "$root$libraries${real#"$SYSTEM_LIBRARIES"}" "$root$libraries${directory#"$SYSTEM_LIBRARIES"}/${file##*/}"
  fi
}

stage_libraries() {
  local file opened=()
  mapfile -t opened < <(opened_by_ucx)
  while read -r file; do
    [[ $onto_base == false || ! ${file##*/} =~ $BASE_LIBRARIES ]] || continue
    # Programs name their loader by its whole path.
    if [[ ${file##*/} == ld-linux* ]]; then
      install -D -m 0755 "$(readlink -f "$file")" "$root$file"
    else
      place "$file"
    fi
  done < <(libraries_of "${programs[@]/#/$bin/}" "${opened[@]}" && printf '%s\n' "${opened[@]}")
  # Which driver belongs to which card.
  [[ ! -d /etc/libibverbs.d ]] || cp -a /etc/libibverbs.d "$root/etc/"
}

stage_settings() {
  if [[ $onto_base == false ]]; then
    printf 'root:x:0:0:root:/:/sbin/nologin\nweft:x:%s:%s:weft:/:/sbin/nologin\n' $USER_ID $USER_ID > "$root/etc/passwd"
    printf 'root:x:0:\nweft:x:%s:\n' $USER_ID > "$root/etc/group"
    printf 'hosts: files dns\n' > "$root/etc/nsswitch.conf"
  fi
  # Mount points, so that the root can be read-only.
  mkdir -p "$root"/{dev,proc,sys,models,tls,var/cache/weft}
  install -d -m 1777 "$root/tmp"
}

onto_base=false
if [[ ${1:-} == --onto-base ]]; then
  onto_base=true
  shift
fi
case ${1:-} in
  -h | --help)
    usage
    exit 0
    ;;
esac
[[ $# -ge 3 ]] || fail "want BIN_DIR FOLDER PROGRAM...; see --help" 2
bin=$1
root=$2
programs=("${@:3}")
[[ ! -e $root || -z $(ls -A "$root") ]] || fail "$root is not empty" 2
libraries=$SYSTEM_LIBRARIES
[[ $onto_base == false ]] || libraries=$OWN_LIBRARIES
busybox=$(command -v busybox) || fail "needs the package busybox-static"

umask 022
mkdir -p "$root"/{etc,usr/bin}
for program in "${programs[@]}"; do
  [[ -x $bin/$program ]] || fail "there is no program $bin/$program"
  install -D -m 0755 "$bin/$program" "$root/usr/bin/$program"
  strip --strip-unneeded "$root/usr/bin/$program"
done
! ldd "$busybox" > /dev/null 2>&1 || fail "$busybox is not linked statically; install busybox-static"
install -D -m 0755 "$busybox" "$root/usr/bin/wget"
stage_libraries
stage_settings
