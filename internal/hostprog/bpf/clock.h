/*
 * The time by which flowcells, flowlets and reports go: the kernel's, or a test's own.
 */

/* For tests: not the kernel's clock counts, but clock. Where it is 0 nothing is left of that. */
volatile const __u8 simulated = 0;

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} clock SEC(".maps");

static __always_inline __u64 nanos(void)
{
	__u32 zero = 0;
	__u64 *now;

	if (!simulated)
		return bpf_ktime_get_ns();
	now = bpf_map_lookup_elem(&clock, &zero);
	return now ? *now : 0;
}
