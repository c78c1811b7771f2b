# For the scripts that put pages into sources.

# The scripts at `paths` as one function, in order: what one declares, those behind it see, and nobody else.
function(join_scripts paths result)
  set(script "(() => {\n'use strict';\n")
  foreach(path IN LISTS paths)
    file(READ "${path}" part)
    string(APPEND script "${part}")
  endforeach()
  set(${result} "${script}})();\n" PARENT_SCOPE)
endfunction()

# The bytes of the file at `path` as the elements of an array in C++.
function(byte_elements path result)
  file(READ "${path}" bytes HEX)
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
  set(${result} "${bytes}" PARENT_SCOPE)
endfunction()
