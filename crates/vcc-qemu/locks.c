/*
 * Preloaded into QEMU, whose emulated CPUs share a lock with its event loop. A CPU that slept for
 * it would give up its turn on the core, which a hypervisor's does not: with KVM, interrupts and
 * registers of cards take no such lock. So these threads spin.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

/* The event loop holds the lock for less. If not, something is wrong, and the CPU sleeps. */
#define SPIN_NS 2000000L
/* As QEMU names them with debug-threads=on. */
#define CPU_NAME "CPU "

typedef int lock_fn(pthread_mutex_t *mutex);

static lock_fn *next_lock;

__attribute__((constructor)) static void find_lock(void)
{
	next_lock = (lock_fn *)dlsym(RTLD_NEXT, "pthread_mutex_lock");
}

static int is_guest_cpu(void)
{
	char name[16] = "";

	return !prctl(PR_GET_NAME, name) && !strncmp(name, CPU_NAME, strlen(CPU_NAME));
}

static long now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000L + now.tv_nsec;
}

int pthread_mutex_lock(pthread_mutex_t *mutex)
{
	long end_ns;

	if (!pthread_mutex_trylock(mutex))
		return 0;
	if (is_guest_cpu()) {
		end_ns = now_ns() + SPIN_NS;
		while (now_ns() < end_ns) {
			if (!pthread_mutex_trylock(mutex))
				return 0;
		}
	}
	if (!next_lock)
		find_lock();
	return next_lock(mutex);
}
