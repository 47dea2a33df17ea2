/* Whose datagrams are sprayed, and put in order: the loader writes the lists (datagrams_linux.go). */

#define PROTO_UDP 17

/* Whether there are any. The loader sets it. */
volatile const __u8 listing = 0;

/* Ports of either end. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 256); /* hostprog.maxListed */
	__type(key, __be16);
	__type(value, __u8);
} listed_ports SEC(".maps");

struct listed {
	__u32 length;
	__be32 addr;
};

/* Addresses of the other end. */
struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 256);
	__type(key, struct listed);
	__type(value, __u8);
} listed_hosts SEC(".maps");

static __always_inline int is_listed(__be32 other, __be32 ports)
{
	struct listed host = { 32, other };
	union {
		__be32 both;
		__be16 each[2];
	} of = { ports };

	return bpf_map_lookup_elem(&listed_ports, &of.each[0]) || bpf_map_lookup_elem(&listed_ports, &of.each[1]) ||
	       bpf_map_lookup_elem(&listed_hosts, &host);
}
