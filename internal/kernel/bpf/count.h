/*
 * What a program counts, by CPU: kernel.SumCounters adds it up. Behind packet.h and
 * the program's own list of counters, whose last is NUM_COUNTERS.
 */

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, NUM_COUNTERS);
	__type(key, __u32);
	__type(value, __u64);
} counters SEC(".maps");

static __always_inline void count(__u32 what, __u64 n)
{
	__u64 *c = bpf_map_lookup_elem(&counters, &what);

	if (c)
		*c += n;
}

static __always_inline int drop(__u32 why)
{
	count(why, 1);
	return TC_ACT_SHOT;
}

static __always_inline int pass(__u32 why)
{
	count(why, 1);
	return TC_ACT_UNSPEC;
}
