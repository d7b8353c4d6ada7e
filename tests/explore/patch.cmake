# Copies of the engine's sources with some text replaced, in the build tree.

# weir_explore_read(variable source): the text of a source of the engine.
function(weir_explore_read variable source)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/${source}")
    file(READ "${PROJECT_SOURCE_DIR}/src/${source}" read)
    set(${variable} "${read}" PARENT_SCOPE)
endfunction()

# weir_explore_replace(variable from to): `from` must be there exactly once. If it is not, the text will not compile,
# and says why.
function(weir_explore_replace variable from to)
    string(FIND "${${variable}}" "${from}" first)
    string(FIND "${${variable}}" "${from}" last REVERSE)
    if(first EQUAL -1 OR NOT first EQUAL last)
        string(REGEX REPLACE "[\"\\\n]" " " line "${from}")
        set(${variable} "#error \"src has changed; this is not there, or not once: ${line}\"\n" PARENT_SCOPE)
    else()
        string(REPLACE "${from}" "${to}" replaced "${${variable}}")
        set(${variable} "${replaced}" PARENT_SCOPE)
    endif()
endfunction()

# weir_explore_number(variable name value): another value for a #define.
function(weir_explore_number variable name value)
    string(REGEX MATCH "#define ${name} [0-9]+" define "${${variable}}")
    set(text "${${variable}}")
    weir_explore_replace(text "${define}\n" "#define ${name} ${value}\n")
    set(${variable} "${text}" PARENT_SCOPE)
endfunction()

# weir_explore_write(path text): only if it differs, so that nothing is built again for nothing.
function(weir_explore_write path text)
    if(EXISTS "${path}")
        file(READ "${path}" old)
        if(old STREQUAL text)
            return()
        endif()
    endif()
    file(WRITE "${path}" "${text}")
endfunction()
