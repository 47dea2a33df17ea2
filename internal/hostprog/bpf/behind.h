/*
 * Prefixes behind this host, of containers and virtual machines whose packets it forwards.
 */

#define MAX_BEHIND 1024 /* hostprog.maxBehind */

/* The key of a longest prefix match over both families; IPv4 is mapped, ::ffff:a.b.c.d. */
struct behind_prefix {
	__u32 length;
	__be32 addr[4];
};

/* The loader makes it as large as it needs it. */
struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, MAX_BEHIND);
	__type(key, struct behind_prefix);
	__type(value, __u8); /* BEHIND, and in spray.c CUTS */
} behind SEC(".maps");

#define BEHIND 2

static __always_inline __u8 *behind_at(const __be32 *address)
{
	struct behind_prefix key = { 128 };

	__builtin_memcpy(key.addr, address, sizeof(key.addr));
	return bpf_map_lookup_elem(&behind, &key);
}

static __always_inline __u8 *behind_at4(__be32 address)
{
	struct behind_prefix key = { 128, { 0, 0, bpf_htonl(0xffff), address } };

	return bpf_map_lookup_elem(&behind, &key);
}
