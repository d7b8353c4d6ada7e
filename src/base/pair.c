#include "base/pair.h"

#include <weir.h>

#ifdef __x86_64__
#include <cpuid.h>
#else
#include <sys/auxv.h>
#endif

bool pair_single_load;
bool pair_single_swap;

/* Every caller of pair_init() stores the same values; relaxed is enough. */
static void choose(bool single_load, bool single_swap)
{
    __atomic_store_n(&pair_single_load, single_load, __ATOMIC_RELAXED);
    __atomic_store_n(&pair_single_swap, single_swap, __ATOMIC_RELAXED);
}

#ifdef __x86_64__

int pair_init(void)
{
    unsigned a;
    unsigned b;
    unsigned c = 0;
    unsigned d;
    if (!__get_cpuid(1, &a, &b, &c, &d) || (c & bit_CMPXCHG16B) == 0) {
        return WEIR_ECPU;
    }
    choose((c & bit_AVX) != 0, true);
    return 0;
}

#else

int pair_init(void)
{
    unsigned long has = getauxval(AT_HWCAP);
    choose((has & HWCAP_USCAT) != 0, (has & HWCAP_ATOMICS) != 0);
    return 0; /* every aarch64 has LDAXP and STLXP */
}

#endif
