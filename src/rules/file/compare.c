/* Finds changes in a rule file that only a restart applies. */
#include "rules/file/fields.h"

void config_compare(const struct config *old, const struct config *next, const char *name,
                    struct problems *problems)
{
    struct place place = {name, 0, 0};
    for (size_t i = 0; i < section_top.count; i++) {
        const struct field *map = &section_top.fields[i];
        for (size_t j = 0; map->section != NULL && j < map->section->count; j++) {
            const struct field *f = &map->section->fields[j];
            if (f->change == CHANGE_BY_SECTION &&
                !field_same(f, (const char *)old + map->offset, (const char *)next + map->offset)) {
                warning(problems, place, "%s.%s has changed, which takes effect after a restart",
                        map->name, f->name);
            }
        }
    }
    if (old->adhoc.off != next->adhoc.off) {
        warning(problems, place, "adhoc has changed, which takes effect after a restart");
    }
}
