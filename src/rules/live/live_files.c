/* Lists the files that the rules name, for callers that watch them. */
#include "rules/live/live.h"

static void list_files(const struct source *source, rules_file_fn fn, void *arg)
{
    for (const struct source_file *f = source->files; f != NULL; f = f->next) {
        fn(arg, f);
    }
}

void rules_files(struct weir_rules *r, rules_file_fn fn, void *arg)
{
    (void)pthread_mutex_lock(&r->reload);
    const struct config *configs[] = {&r->set->config, &r->rejected};
    for (size_t i = 0; i < 2; i++) {
        for (size_t j = 0; j < configs[i]->sources_count; j++) {
            list_files(configs[i]->sources[j], fn, arg);
        }
    }
    (void)pthread_mutex_unlock(&r->reload);
}
