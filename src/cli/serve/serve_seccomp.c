#include "cli/serve/serve_seccomp.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/log.h"

#if defined(__x86_64__)
#define ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCH AUDIT_ARCH_AARCH64
#endif

/* LeakSanitizer stops the other threads with ptrace() when the program ends. */
#if defined(__SANITIZE_ADDRESS__)
#define NEEDS_PTRACE 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define NEEDS_PTRACE 1
#endif
#endif

/* Newer than the headers of some systems that the program is built on. */
#ifndef __NR_mount_setattr
#define __NR_mount_setattr 442
#endif
#ifndef __NR_quotactl_fd
#define __NR_quotactl_fd 443
#endif

/* ---- what is denied ---- */

#define DENY(call)                                                                                 \
    {                                                                                              \
#call, __NR_##call                                                                         \
    }

static const struct {
    const char *name;
    unsigned number;
} denied[] = {
    /* other programs */
    DENY(execve),
    DENY(execveat),
/* other processes */
#ifndef NEEDS_PTRACE
    DENY(ptrace),
#endif
    DENY(process_vm_readv),
    DENY(process_vm_writev),
    DENY(process_madvise),
    DENY(pidfd_getfd),
    DENY(kcmp),
    /* namespaces and mounts; see also clone() below */
    DENY(unshare),
    DENY(setns),
    DENY(mount),
    DENY(umount2),
    DENY(pivot_root),
    DENY(chroot),
    DENY(fsopen),
    DENY(fsconfig),
    DENY(fsmount),
    DENY(fspick),
    DENY(move_mount),
    DENY(open_tree),
    DENY(mount_setattr),
    DENY(open_by_handle_at),
    DENY(fanotify_init),
    /* the kernel */
    DENY(bpf),
    DENY(perf_event_open),
    DENY(userfaultfd),
    DENY(io_uring_setup),
    DENY(io_uring_enter),
    DENY(io_uring_register),
    DENY(init_module),
    DENY(finit_module),
    DENY(delete_module),
    DENY(kexec_load),
#ifdef __NR_kexec_file_load
    DENY(kexec_file_load),
#endif
    DENY(reboot),
    DENY(syslog),
    DENY(personality),
    /* the machine */
    DENY(swapon),
    DENY(swapoff),
    DENY(acct),
    DENY(quotactl),
    DENY(quotactl_fd),
    DENY(sethostname),
    DENY(setdomainname),
    DENY(settimeofday),
    DENY(clock_settime),
    DENY(clock_adjtime),
    DENY(adjtimex),
    /* keys */
    DENY(add_key),
    DENY(request_key),
    DENY(keyctl),
#ifdef __x86_64__
    DENY(iopl),
    DENY(ioperm),
    DENY(modify_ldt),
    DENY(create_module),
    DENY(query_module),
    DENY(get_kernel_syms),
    DENY(uselib),
#endif
};

#define DENIED (sizeof denied / sizeof denied[0])

const char *seccomp_denied(size_t i, long *number)
{
    *number = i < DENIED ? (long)denied[i].number : -1;
    return i < DENIED ? denied[i].name : NULL;
}

/* ---- the filter ---- */

#ifdef ARCH

#define X32_BIT 0x40000000u
#define NEW_NAMESPACES                                                                             \
    (CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID |  \
     CLONE_NEWNET)

/* Both machines have the low half of an argument first. */
#define LOAD(member)                                                                               \
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (unsigned)offsetof(struct seccomp_data, member))
#define RETURN(value) BPF_STMT(BPF_RET | BPF_K, (value))
/* Goes on with the next instruction if the comparison holds; otherwise leaves out `otherwise`. */
#define WHEN(comparison, value, otherwise)                                                         \
    BPF_JUMP(BPF_JMP | (comparison) | BPF_K, (value), 0, (otherwise))

static bool install(const struct sock_fprog *program)
{
    /*
     * Without SPEC_ALLOW, kernels before 5.16 make the whole process slower. A filter of systemd
     * may not permit seccomp(), but prctl().
     */
    return syscall(__NR_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_SPEC_ALLOW,
                   program) == 0 ||
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, program) == 0;
}

bool seccomp_install(int error)
{
    const unsigned deny = SECCOMP_RET_ERRNO | ((unsigned)error & SECCOMP_RET_DATA);
    const struct sock_filter first[] = {
        /* System calls of other machines have other numbers: i386 on x86-64, arm on aarch64. */
        LOAD(arch),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCH, 1, 0),
        RETURN(deny),
        LOAD(nr),
        WHEN(BPF_JGE, X32_BIT, 1),
        RETURN(deny),
        /* Its flags are in memory, which a filter cannot read. Then threads are made by clone(). */
        WHEN(BPF_JEQ, __NR_clone3, 1),
        RETURN(SECCOMP_RET_ERRNO | ENOSYS),
        WHEN(BPF_JEQ, __NR_clone, 4),
        LOAD(args[0]),
        WHEN(BPF_JSET, NEW_NAMESPACES, 1),
        RETURN(deny),
        RETURN(SECCOMP_RET_ALLOW),
    };
    struct sock_filter filter[sizeof first / sizeof first[0] + 2 * DENIED + 1];
    size_t n = sizeof first / sizeof first[0];
    memcpy(filter, first, sizeof first);
    for (size_t i = 0; i < DENIED; i++) {
        filter[n++] = (struct sock_filter)WHEN(BPF_JEQ, denied[i].number, 1);
        filter[n++] = (struct sock_filter)RETURN(deny);
    }
    filter[n++] = (struct sock_filter)RETURN(SECCOMP_RET_ALLOW);
    const struct sock_fprog program = {(unsigned short)n, filter};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && install(&program);
}

#else

bool seccomp_install(int error)
{
    (void)error;
    errno = ENOSYS;
    return false;
}

#endif

void serve_seccomp(int choice)
{
    if (choice == SECCOMP_ON && !seccomp_install(EPERM)) {
        LOG(LEVEL_WARNING, "system calls are not restricted: the kernel refuses a filter",
            LOG_STRING("why", strerror(errno)));
    }
}
