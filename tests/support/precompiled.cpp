// The test library's source that uses its precompiled header: without a source, CMake does not build the header.
