# Flags that hold for every target of the tree.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin")

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()
set(CMAKE_CXX_FLAGS_RELEASE "-O2")
set(CMAKE_CXX_FLAGS_DEBUG "-O0 -g")
set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O1 -g1")

# -ffp-contract=off: a multiply and an add stay two roundings unless a kernel asks for a fused one by name, so that
# every instruction set and compiler gives the scalar code the same bits.
add_compile_options(-Wall -Wextra -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual -Werror
                    -ffp-contract=off -fno-strict-aliasing)
include_directories("${CMAKE_SOURCE_DIR}")

if(WEFT_SANITIZE)
  add_compile_options(-fsanitize=${WEFT_SANITIZE} -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${WEFT_SANITIZE})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # Instrumentation hides from g++ 12 that a moved-from std::variant was set; the plain builds still look.
    add_compile_options(-Wno-maybe-uninitialized)
  endif()
  if(WEFT_SANITIZE MATCHES "undefined")
    add_compile_options(-fno-sanitize-recover=undefined)
  endif()
  if(WEFT_SANITIZE MATCHES "thread")
    # g++ warns that atomic_thread_fence is not modelled; we use none on purpose in code that it checks.
    add_compile_options(-Wno-tsan)
  endif()
endif()

if(WEFT_FUZZ)
  # Coverage counters in the libraries too, so that the fuzz targets see where an input leads.
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()

find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM)
  # Relative paths, so that a clone in another folder finds the same objects.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env "CCACHE_BASEDIR=${CMAKE_SOURCE_DIR}"
      "CCACHE_NOHASHDIR=1" ${CCACHE_PROGRAM})
  set(CMAKE_C_COMPILER_LAUNCHER ${CMAKE_CXX_COMPILER_LAUNCHER})
endif()
