#!/bin/sh
# usage: check_symbols.sh NM ARCHIVE
# Fails if an object of the kernels defines a symbol that the linker may merge with another object's: weak, unique or
# vague. Such a function, compiled for AVX-512, could become the copy that the whole program uses. The one global
# definition allowed in an object of an instruction set is its Table().
set -eu
nm=$1
archive=$2
symbols=$("$nm" -A -C --defined-only "$archive")
objects=$(printf '%s\n' "$symbols" | grep -c 'Table()$') || true
[ "$objects" -ge 1 ] || { echo "no Table() found in $archive: wrong file?"; exit 1; }
if printf '%s\n' "$symbols" | grep -E ' [WwVvuC] '; then
  echo "kernels must not define weak symbols (include no C++ library header; keep templates in unnamed namespaces)"
  exit 1
fi
if printf '%s\n' "$symbols" | grep 'kernels_' | grep -E ' [A-Z] ' | grep -Ev ' [T] .*::Table\(\)$'; then
  echo "kernels of an instruction set define only Table() for others"
  exit 1
fi
echo "$objects tables, no weak symbols"
