/* How long the program believes its paths. Behind an agent that has died or hangs they may lead
 * over links that have failed since, and packets go by the kernel's routes. */

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} lease SEC(".maps"); /* ns of the clock until when; 0: for ever, without an agent */

static __always_inline int late(__u64 now)
{
	__u32 zero = 0;
	__u64 *until = bpf_map_lookup_elem(&lease, &zero);

	return until && *until && now > *until;
}
