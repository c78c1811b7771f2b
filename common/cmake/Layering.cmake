# add_layer_library(NAME SOURCES ... [HEADERS ...] [DEPS ...])
#
# One static library per folder. DEPS are the only libraries of ours (and packages) that its sources may use. That is
# checked by the linker: the library is linked whole into an empty program together with DEPS and what they declare, so
# a call into any other library fails the build.
function(add_layer_library NAME)
  cmake_parse_arguments(ARG "" "" "SOURCES;HEADERS;DEPS" ${ARGN})
  add_library(${NAME} STATIC ${ARG_SOURCES} ${ARG_HEADERS})
  target_link_libraries(${NAME} PUBLIC ${ARG_DEPS})

  set(empty_main "${CMAKE_BINARY_DIR}/layering/empty_main.cc")
  if(NOT EXISTS "${empty_main}")
    file(WRITE "${empty_main}" "int main() { return 0; }\n")
  endif()
  add_executable(${NAME}_layering "${empty_main}")
  set_target_properties(${NAME}_layering PROPERTIES
                        RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/layering")
  add_dependencies(${NAME}_layering ${NAME})
  target_link_libraries(${NAME}_layering PRIVATE -Wl,--whole-archive $<TARGET_FILE:${NAME}>
                        -Wl,--no-whole-archive ${ARG_DEPS})
  set_target_properties(${NAME}_layering PROPERTIES LINK_DEPENDS $<TARGET_FILE:${NAME}>)
endfunction()

# Tests labelled `asan` or `tsan` are those that tests/run.sh builds and runs in the preset of that name.
add_custom_target(weft_asan_tests)
add_custom_target(weft_tsan_tests)
add_custom_target(weft_asan_nightly_tests)
add_custom_target(weft_fuzzers)

# weft_add_test(NAME SOURCES ... [DEPS ...] [LABELS ...] [TIMEOUT seconds] [ARGS ...])
#
# A GoogleTest program registered with CTest under its own name. WEFT_TEST_DATA tells it where tests/data is.
# LABELS: `asan` and `tsan` run it in that preset too, `asan_nightly` in the nightly run only; `nightly` leaves it out of
# the ordinary run.
function(weft_add_test NAME)
  cmake_parse_arguments(ARG "" "TIMEOUT" "SOURCES;DEPS;LABELS;ARGS" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 600)  # a hang, not a slow machine
  endif()
  add_executable(${NAME} ${ARG_SOURCES})
  target_link_libraries(${NAME} PRIVATE ${ARG_DEPS} GTest::gmock GTest::gtest_main)
  set_target_properties(${NAME} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/tests")
  add_test(NAME ${NAME} COMMAND ${NAME} ${ARG_ARGS})
  foreach(label IN ITEMS asan tsan asan_nightly)
    if(label IN_LIST ARG_LABELS)
      add_dependencies(weft_${label}_tests ${NAME})
    endif()
  endforeach()
  set_tests_properties(${NAME} PROPERTIES TIMEOUT ${ARG_TIMEOUT} LABELS "${ARG_LABELS}"
    ENVIRONMENT "WEFT_TEST_DATA=${CMAKE_SOURCE_DIR}/tests/data;WEFT_SOURCE_DIR=${CMAKE_SOURCE_DIR};WEFT_BIN_DIR=${CMAKE_BINARY_DIR}/bin")
endfunction()

# weft_add_fuzzer(NAME SOURCES ... DEPS ... CORPUS folder): a libFuzzer program, built where WEFT_FUZZ is on.
#
# The corpus is also a test labelled `asan`: every file in it runs through the target once. fuzz/targets.txt in the build
# folder lists each target with its corpus, for tests/run.sh.
if(WEFT_FUZZ)
  file(WRITE "${CMAKE_BINARY_DIR}/fuzz/targets.txt" "")
endif()
function(weft_add_fuzzer NAME)
  cmake_parse_arguments(ARG "" "CORPUS" "SOURCES;DEPS" ${ARGN})
  if(NOT WEFT_FUZZ)
    return()
  endif()
  add_executable(${NAME} ${ARG_SOURCES})
  target_link_libraries(${NAME} PRIVATE ${ARG_DEPS} -fsanitize=fuzzer)
  set_target_properties(${NAME} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/fuzz")
  add_dependencies(weft_fuzzers ${NAME})

  get_filename_component(corpus "${ARG_CORPUS}" ABSOLUTE)
  if(NOT IS_DIRECTORY "${corpus}")
    message(FATAL_ERROR "${NAME}: the corpus folder ${corpus} does not exist")
  endif()
  file(APPEND "${CMAKE_BINARY_DIR}/fuzz/targets.txt" "${NAME} ${corpus}\n")
  add_test(NAME ${NAME}_corpus COMMAND ${NAME} -runs=0 -timeout=10 -rss_limit_mb=2048 "${corpus}")
  set_tests_properties(${NAME}_corpus PROPERTIES TIMEOUT 300 LABELS asan)
endfunction()
