# What all targets of the project have in common: language, warnings, sanitizers, ccache, the layer check.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE)
    set(CMAKE_BUILD_TYPE Release)
endif()
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}")

find_program(HEADGATE_CCACHE ccache)
if(HEADGATE_CCACHE)
    # Without pch_defines and time_macros ccache cannot reuse what was compiled with a precompiled header; with the base folder and
    # without the hash of the build folder it finds the results of other checkouts and other folders.
    set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env "CCACHE_SLOPPINESS=pch_defines,time_macros"
        "CCACHE_BASEDIR=${CMAKE_SOURCE_DIR}" CCACHE_NOHASHDIR=1 "${HEADGATE_CCACHE}")
endif()

add_library(headgate_options INTERFACE)
target_include_directories(headgate_options INTERFACE "${CMAKE_SOURCE_DIR}")
target_compile_options(headgate_options INTERFACE
    -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wnon-virtual-dtor -Wold-style-cast
    -Wno-psabi -Wno-missing-field-initializers -Wno-restrict $<$<CXX_COMPILER_ID:GNU>:-fcoroutines> $<$<BOOL:${HEADGATE_WERROR}>:-Werror>
    -fno-omit-frame-pointer)
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_SYSTEM_PROCESSOR STREQUAL x86_64)
    # Clear and copy structures of some hundred bytes with plain moves: `rep stos` takes longer to start than they take.
    target_compile_options(headgate_options INTERFACE
        -mmemset-strategy=unrolled_loop:512:noalign,libcall:-1:noalign
        -mmemcpy-strategy=unrolled_loop:512:noalign,libcall:-1:noalign)
endif()
# A client must never be able to reach an assert inside Boost (hardening P1), in any build.
target_compile_definitions(headgate_options INTERFACE BOOST_DISABLE_ASSERTS HEADGATE_VERSION="${PROJECT_VERSION}")
if(HEADGATE_SANITIZE)
    add_compile_options(-fsanitize=${HEADGATE_SANITIZE} -g1)
    if(HEADGATE_SANITIZE MATCHES "undefined")
        add_compile_options(-fno-sanitize-recover=undefined)
    endif()
    if(HEADGATE_SANITIZE MATCHES "address")
        add_compile_options(-O1)
    elseif(HEADGATE_SANITIZE MATCHES "thread")
        add_compile_options(-O1 -Wno-tsan)
    endif()
    add_link_options(-fsanitize=${HEADGATE_SANITIZE})
endif()
if(HEADGATE_COVERAGE)
    add_compile_options(--coverage)
    add_link_options(--coverage)
endif()

find_package(Threads REQUIRED)
find_package(Boost 1.81 REQUIRED)

# A forbidden #include stops the build. The check is one quick pass over the sources before anything is compiled.
add_custom_target(layers ALL
    COMMAND "${CMAKE_COMMAND}" -D "ROOT=${CMAKE_SOURCE_DIR}" -P "${CMAKE_SOURCE_DIR}/cmake/layers.cmake"
    COMMENT "Checking that includes keep to the layers" VERBATIM)

# headgate_layer(<name> SOURCES ... LINKS ...): one layer of the design as one static library, `headgate_<name>`.
function(headgate_layer name)
    cmake_parse_arguments(arg "" "" "SOURCES;LINKS" ${ARGN})
    add_library(headgate_${name} STATIC ${arg_SOURCES})
    target_link_libraries(headgate_${name} PUBLIC headgate_options ${arg_LINKS})
    add_dependencies(headgate_${name} layers)
endfunction()

# headgate_test(<name> SOURCES ... LINKS ...): one doctest executable and its ctest entry.
function(headgate_test name)
    cmake_parse_arguments(arg "" "TIMEOUT" "SOURCES;LINKS" ${ARGN})
    if(NOT arg_TIMEOUT)
        set(arg_TIMEOUT 300)
    endif()
    add_executable(test_${name} ${arg_SOURCES})
    target_link_libraries(test_${name} PRIVATE headgate_test_main ${arg_LINKS})
    target_precompile_headers(test_${name} REUSE_FROM headgate_test_main)
    if(HEADGATE_SANITIZE) # GCC 12 sees uninitialised variables inside <regex> there
        target_compile_options(test_${name} PRIVATE -Wno-maybe-uninitialized)
    endif()
    add_test(NAME ${name} COMMAND test_${name} WORKING_DIRECTORY "${CMAKE_SOURCE_DIR}")
    set_tests_properties(${name} PROPERTIES TIMEOUT ${arg_TIMEOUT})
endfunction()
