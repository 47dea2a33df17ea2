/*
 * The heartbeat of the process that a program serves, in nanoseconds of
 * CLOCK_MONOTONIC. The loader sets how long the process may be silent; 0: for ever.
 * The process writes the time; the value is 0 until the first beat.
 */

volatile const __u64 patience = 0;
volatile __u64 heartbeat = 0;

/* unattended reports that the process has been silent for too long. Signed: it
 * may be a moment ahead of the clock read here. */
static __always_inline int unattended(void)
{
	return patience && (__s64)(bpf_ktime_get_ns() - heartbeat) > (__s64)patience;
}
