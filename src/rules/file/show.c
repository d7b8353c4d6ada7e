#include "rules/file/show.h"

#include "rules/file/adhoc.h"
#include "rules/file/limits.h"

void show_bytes(FILE *out, uint64_t bytes)
{
    char text[QUANTITY_MAX];
    (void)fputs(bytes > 0 ? size_print_short(bytes, text) : "0 bytes", out);
}

void config_show(const struct config *config, show_note_fn note, FILE *out)
{
    const struct show s = {config, NULL, NULL, note, out};
    struct problems quiet = {0};
    fields_show(&s, &section_top, config, "\n");
    (void)fprintf(out, "\n# %zu limit%s%s, ", config->limits_count,
                  config->limits_count == 1 ? "" : "s",
                  config->adhoc.off || adhoc_is_shared(config) ? "" : " and adhoc");
    show_bytes(out, config_bytes(config, &quiet));
    (void)fputs(" in all\n", out);
}
