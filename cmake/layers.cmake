# Holds every #include of the product to the layers of docs/architecture.md. Run with cmake -P; fails on the first bad tree.
#
#   gateway -> config -> limiter/core        nothing includes gateway/
#      '-----> limiter -> limiter/core
#
# A folder may include what its row allows; anything else is printed as file:line with what would be right.
cmake_minimum_required(VERSION 3.25)

set(standard "<[a-z0-9_]+>")                                   # <vector>, <chrono>: no folder, no .h
set(posix "<(sys|netinet|arpa|linux)/[a-z_]+\\.h>|<[a-z_]+\\.h>")
set(asio "<boost/(asio|system|unordered|intrusive|container|core)[/.][a-z0-9_/.]*>|<openssl/[a-z0-9_]+\\.h>")

set(allowed_limiter_core "${standard}|\"limiter/core/")
set(allowed_limiter      "${allowed_limiter_core}|${posix}|${asio}|<hiredis/[a-z]+\\.h>|\"limiter/")
set(allowed_config       "${allowed_limiter_core}|${posix}|<yaml-cpp/|<nlohmann/|\"config/")
set(allowed_gateway      "${allowed_limiter}|${allowed_config}|<boost/|<CLI/|<spdlog/|<prometheus/|\"gateway/")

set(means_limiter_core "the standard library and limiter/core/")
set(means_limiter      "the standard library, POSIX, Asio, hiredis and limiter/")
set(means_config       "the standard library, yaml-cpp, nlohmann/json, config/ and limiter/core/")
set(means_gateway      "its libraries, gateway/, config/ and limiter/")

set(bad 0)
foreach(layer IN ITEMS limiter/core limiter config gateway)
    string(REPLACE "/" "_" row "${layer}")
    file(GLOB_RECURSE sources "${ROOT}/${layer}/*.hpp" "${ROOT}/${layer}/*.cpp")
    foreach(source IN LISTS sources)
        file(RELATIVE_PATH shown "${ROOT}" "${source}")
        if(layer STREQUAL "limiter" AND shown MATCHES "^limiter/core/")
            continue()
        endif()
        file(STRINGS "${source}" includes REGEX "^[ \t]*#[ \t]*include")
        foreach(line IN LISTS includes)
            if(NOT line MATCHES "include[ \t]*(${allowed_${row}})")
                message("${shown}: '${line}' crosses a layer; ${layer}/ may include only ${means_${row}}")
                set(bad 1)
            endif()
        endforeach()
    endforeach()
endforeach()
if(bad)
    message(FATAL_ERROR "The layers are described in docs/architecture.md and cmake/layers.cmake.")
endif()
