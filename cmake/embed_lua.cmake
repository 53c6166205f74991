# Makes a C++ source of Lua scripts: `const std::string_view <name>_lua` for each <name>.lua of FILES. Run with cmake -P.
set(source "// Made by cmake/embed_lua.cmake. Do not edit.\n#include <string_view>\n\nnamespace headgate::limiter::redis {\n\n")
foreach(file IN LISTS FILES)
    get_filename_component(name "${file}" NAME_WE)
    file(READ "${file}" text)
    string(LENGTH "${text}" length)
    if(length GREATER 60000) # compilers need not take longer literals
        message(FATAL_ERROR "${file} is too long to embed")
    endif()
    string(APPEND source "extern const std::string_view ${name}_lua;\nconst std::string_view ${name}_lua = R\"lua(${text})lua\";\n\n")
endforeach()
string(APPEND source "} // namespace headgate::limiter::redis\n")
file(WRITE "${OUT}" "${source}")
