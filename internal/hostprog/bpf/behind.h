/*
 * Prefixes behind this host, of containers and virtual machines whose packets it forwards, and
 * their TCP connections.
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

/* A connection that is forwarded, as packets to this host have it; the key of order.c. */
struct connection {
	__be32 saddr[4]; /* of the other end */
	__be32 daddr[4]; /* of this end, after masquerading: as packets are at the uplink */
	__be32 ports;
};

/*
 * The connections of which this end has acknowledged something: that they are alive is then no
 * stranger's invention. spray.c writes them, order.c and the loader read them. When it is full,
 * those make room that have been idle longest.
 */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 65536); /* hostprog.maxForwarded */
	__type(key, struct connection);
	__type(value, __u32); /* when this end has sent last, in units of 2^30 ns */
} forwarded SEC(".maps");
