# How every target of the project is built: one place for language level, warnings, sanitizers.

function(tuck_configure target)
  target_compile_features(${target} PRIVATE cxx_std_20)
  set_target_properties(${target} PROPERTIES CXX_EXTENSIONS OFF)
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR})
  target_compile_options(
    ${target}
    PRIVATE -Wall -Wextra -Wconversion -Wsign-conversion -Wshadow
            -Wnon-virtual-dtor
            -fno-omit-frame-pointer
            $<$<BOOL:${TUCK_WERROR}>:-Werror>
            $<$<CXX_COMPILER_ID:Clang>:-Wthread-safety>)
  target_compile_definitions(${target} PRIVATE $<$<CONFIG:Debug>:TUCK_DEBUG=1>
                                               $<$<BOOL:${TUCK_SYNC_POINTS}>:TUCK_SYNC_POINTS=1>)
  if(TUCK_SANITIZE)
    target_compile_options(${target} PRIVATE -fsanitize=${TUCK_SANITIZE})
    # Reports name functions and lines, which -g1 knows; it compiles a quarter faster than -g.
    target_compile_options(${target} PRIVATE -O1 -g1 -fno-sanitize-recover=all)
    target_link_options(${target} PRIVATE -fsanitize=${TUCK_SANITIZE})
  endif()
  if(TUCK_FUZZ)
    # What a fuzzer follows; its main() comes with the programs that have a target.
    target_compile_options(${target} PRIVATE -fsanitize=fuzzer-no-link)
  endif()
endfunction()

# tuck_library(NAME SOURCES... [LINK targets...]): a layer. Links are PRIVATE, so that a layer's
# users see only its façade's own words.
function(tuck_library target)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK" ${ARGN})
  add_library(${target} STATIC ${ARG_SOURCES})
  tuck_configure(${target})
  target_link_libraries(${target} PRIVATE ${ARG_LINK})
endfunction()

function(tuck_program target)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK" ${ARGN})
  add_executable(${target} ${ARG_SOURCES})
  tuck_configure(${target})
  target_link_libraries(${target} PRIVATE ${ARG_LINK})
endfunction()

# tuck_test(NAME SOURCES... [LINK targets...] [LABELS ...] [TIMEOUT s]): a GoogleTest program, one
# ctest entry a test case.
function(tuck_test target)
  cmake_parse_arguments(ARG "" "TIMEOUT" "SOURCES;LINK;LABELS" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)
  endif()
  add_executable(${target} ${ARG_SOURCES})
  tuck_configure(${target})
  target_link_libraries(${target} PRIVATE ${ARG_LINK} GTest::gtest GTest::gtest_main)
  gtest_discover_tests(
    ${target}
    DISCOVERY_TIMEOUT 60
    PROPERTIES TIMEOUT ${ARG_TIMEOUT} LABELS "${ARG_LABELS}")
endfunction()
