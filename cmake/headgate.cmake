# What every target of the project has in common: language, warnings, sanitizers, ccache, and the layer check.
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
    # pch_defines and time_macros: without them ccache cannot reuse anything compiled with a precompiled header.
    set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env "CCACHE_SLOPPINESS=pch_defines,time_macros"
        "${HEADGATE_CCACHE}")
endif()

add_library(headgate_options INTERFACE)
target_include_directories(headgate_options INTERFACE "${CMAKE_SOURCE_DIR}")
target_compile_options(headgate_options INTERFACE
    -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wnon-virtual-dtor -Wold-style-cast
    -Wno-psabi -Wno-missing-field-initializers -Wno-restrict $<$<CXX_COMPILER_ID:GNU>:-fcoroutines> $<$<BOOL:${HEADGATE_WERROR}>:-Werror>
    -fno-omit-frame-pointer)
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_SYSTEM_PROCESSOR STREQUAL x86_64)
    # Structures of some hundred bytes are cleared and copied by plain moves: `rep stos` takes longer to begin than that.
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

# A trained build is made twice (script/build trained): first the layers that a request goes through count what it does there,
# then they are compiled by what was counted. What the training did not meet is compiled as in any release.
set(profile_options "")
if(HEADGATE_PROFILE)
    if(NOT CMAKE_CXX_COMPILER_ID STREQUAL GNU)
        message(FATAL_ERROR "HEADGATE_PROFILE is for GCC")
    elseif(HEADGATE_PROFILE STREQUAL generate)
        set(profile_options -fprofile-generate -fprofile-update=prefer-atomic)
        add_link_options(-fprofile-generate)
    elseif(HEADGATE_PROFILE STREQUAL use)
        set(profile_options -fprofile-use -fprofile-partial-training -Wno-missing-profile)
    else()
        message(FATAL_ERROR "HEADGATE_PROFILE is `generate` or `use`, not `${HEADGATE_PROFILE}`")
    endif()
endif()

find_package(Threads REQUIRED)
find_package(Boost 1.81 REQUIRED)

# A forbidden #include stops the build: the check is one quick pass over the sources before anything compiles.
add_custom_target(layers ALL
    COMMAND "${CMAKE_COMMAND}" -D "ROOT=${CMAKE_SOURCE_DIR}" -P "${CMAKE_SOURCE_DIR}/cmake/layers.cmake"
    COMMENT "Checking that includes keep to the layers" VERBATIM)

# headgate_layer(<name> [TRAINED] SOURCES ... LINKS ...): one layer of design as one static library, `headgate_<name>`.
# TRAINED: requests go through it.
function(headgate_layer name)
    cmake_parse_arguments(arg "TRAINED" "" "SOURCES;LINKS" ${ARGN})
    add_library(headgate_${name} STATIC ${arg_SOURCES})
    target_link_libraries(headgate_${name} PUBLIC headgate_options ${arg_LINKS})
    if(arg_TRAINED)
        target_compile_options(headgate_${name} PRIVATE ${profile_options})
    endif()
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
