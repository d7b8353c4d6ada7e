#include "rules/file/show.h"

#include <inttypes.h>

#include "rules/file/adhoc.h"
#include "rules/file/limits.h"

void show_bytes(FILE *out, uint64_t bytes)
{
    static const char *const units[] = {"bytes", "kB", "MB", "GB", "TB", "PB"};
    double shown = (double)bytes;
    size_t unit = 0;
    while (shown >= 1000 && unit + 1 < sizeof units / sizeof units[0]) {
        shown /= 1000;
        unit++;
    }
    (void)fprintf(out, "%" PRIu64 " bytes", bytes);
    if (unit > 0) {
        (void)fprintf(out, " (%.3g %s)", shown, units[unit]);
    }
}

void config_show(const struct config *config, show_note_fn note, FILE *out)
{
    const struct show s = {config, NULL, NULL, note, out};
    struct problems quiet = {0};
    fields_show(&s, &section_top, config, "\n");
    (void)fprintf(out, "\n# %zu limit%s%s, ", config->limits_count,
                  config->limits_count == 1 ? "" : "s", config->adhoc.off ? "" : " and adhoc");
    show_bytes(out, config_bytes(config, &quiet));
    (void)fputs(" in all\n", out);
}
