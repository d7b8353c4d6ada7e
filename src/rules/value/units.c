#include "rules/value/units.h"

#define KI (UINT64_C(1) << 10)
#define NS_PER_S UINT64_C(1000000000)

/* us may also be written with either of the two letters that Unicode has for micro. */
const struct unit units_of_time[] = {
    {1, "ns", "ns nsec nanosecond nanoseconds"},
    {1000, "us", "us \xc2\xb5s \xce\xbcs usec microsecond microseconds"},
    {1000000, "ms", "ms msec millisecond milliseconds"},
    {NS_PER_S, "s", "s sec secs second seconds"},
    {60 * NS_PER_S, "min", "m min mins minute minutes"},
    {3600 * NS_PER_S, "h", "h hr hrs hour hours"},
    {86400 * NS_PER_S, "day", "d day days"},
    {604800 * NS_PER_S, "week", "w wk wks week weeks"},
    {0, "month", "mo mon mth mths month months"},
    {0, "year", "y yr yrs year years"},
    {0, NULL, NULL},
};

const struct unit units_of_count[] = {
    {1, "", ""},
    {1000, "k", "k K"},
    {1000000, "M", "M"},
    {1000000000, "G", "G"},
    {1000000000000, "T", "T"},
    {0, NULL, NULL},
};

/* K, M and G are missing on purpose: many people read them as powers of 1024. */
const struct unit units_of_size[] = {
    {1, "", "B"},
    {1000, "KB", "KB kB"},
    {KI, "KiB", "KiB"},
    {1000000, "MB", "MB"},
    {KI * KI, "MiB", "MiB"},
    {1000000000, "GB", "GB"},
    {KI * KI * KI, "GiB", "GiB"},
    {1000000000000, "TB", "TB"},
    {KI * KI * KI * KI, "TiB", "TiB"},
    {0, NULL, NULL},
};

static bool has_name(const char *names, struct weir_text name)
{
    while (*names != 0) {
        size_t len = strcspn(names, " ");
        if (text_equal(name, (struct weir_text){names, len})) {
            return true;
        }
        names += len + (names[len] == ' ');
    }
    return false;
}

const struct unit *unit_find(const struct unit *rows, struct weir_text name)
{
    for (; rows->symbol != NULL; rows++) {
        if (has_name(rows->names, name)) {
            return rows;
        }
    }
    return NULL;
}
