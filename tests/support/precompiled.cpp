// Gives the test library one source that uses its precompiled header: without one, CMake never makes the header.
