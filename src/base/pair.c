#include "base/pair.h"

#include <weir.h>

#ifdef __x86_64__
#include <cpuid.h>
#else
#include <sys/auxv.h>
#endif

bool pair_single_load;
bool pair_single_swap;

/* Every call stores the same values, so relaxed is enough. */
int pair_init(void)
{
#ifdef __x86_64__
    unsigned a;
    unsigned b;
    unsigned c = 0;
    unsigned d;
    if (!__get_cpuid(1, &a, &b, &c, &d) || (c & bit_CMPXCHG16B) == 0) {
        return WEIR_ECPU;
    }
    bool load = (c & bit_AVX) != 0;
    bool swap = true;
#else
    unsigned long has = getauxval(AT_HWCAP);
    bool load = (has & HWCAP_USCAT) != 0;
    bool swap = (has & HWCAP_ATOMICS) != 0; /* every aarch64 has LDAXP and STLXP */
#endif
    __atomic_store_n(&pair_single_load, load, __ATOMIC_RELAXED);
    __atomic_store_n(&pair_single_swap, swap, __ATOMIC_RELAXED);
    return 0;
}
