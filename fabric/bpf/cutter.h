/*
 * Cutting the host's own TCP into flowcells: writes weft/flowcell.Number into
 * the IPv4 ID, as weft/flowcell.Cutter gives it to a unit of flowcells.
 *
 * A flow's packets come one after the other, for the kernel's TCP sends under
 * its socket's lock. Where they do not, or where the table of flows has given an
 * entry to another flow while it was in use here, a number may come twice or be
 * left out: a number is a hint, and the receiver takes it for one.
 */

#define INDEX_BITS 6 /* of a number: the segment in its flowcell */
#define CELL_SEGMENTS 63 /* flowcell.MaxIndex + 1 */

#define FIN 1
#define SYN 2
#define RST 4

/* The beginning of a TCP header. */
struct tcp {
	__be32 ports;
	__be32 seq;
	__be32 ack;
	__u8 offset; /* of the payload, in the high 4 bits */
	__u8 flags;
	__be16 window;
};

struct flow_key {
	__be32 saddr;
	__be32 daddr;
	__be32 ports;
};

/* The flowcell under way. */
struct flow {
	__u32 group; /* by which its path is */
	__u32 bytes;
	__u16 segments;
	__u16 cell; /* its number, of which the low 10 bits count */
};

/*
 * Above its size the table forgets flows that have sent nothing for long; they
 * go on from their first flowcell. So does a reused five-tuple, or it goes on
 * where the connection before it ended: the receiver believes in numbers once
 * it has seen them count on, whatever the first one is. Where none are cut, the
 * loader makes room for one.
 */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 65536);
	__type(key, struct flow_key);
	__type(value, struct flow);
} flows SEC(".maps");

/* write_id mends the checksum, too (RFC 1624 §3). */
static __always_inline void write_id(struct ipv4 *ip, __u16 id)
{
	__u32 sum = (__u16)~ip->check + (__u32)(__u16)~ip->id + bpf_htons(id);

	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	ip->id = bpf_htons(id);
	ip->check = ~sum;
}

/* next_number is flowcell.Cutter.Next, and its End when the table is another. */
static __always_inline __u16 next_number(const struct flow_key *key, __u64 hash, const struct group *g,
					 __u32 payload, __u32 segments)
{
	struct flow *f = bpf_map_lookup_elem(&flows, key);
	__u16 number;

	if (!f) {
		struct flow first = {
			.group = g->number,
			.bytes = payload,
			.segments = segments,
			.cell = hash >> 30, /* the path is by bits above 40 */
		};

		bpf_map_update_elem(&flows, key, &first, BPF_ANY);
		count(FLOWS, 1);
		count(FLOWCELLS, 1);
		return first.cell << INDEX_BITS;
	}
	if (f->group != g->number || f->bytes + payload > g->cell_bytes ||
	    f->segments + segments > CELL_SEGMENTS) {
		f->cell += (f->segments + CELL_SEGMENTS) >> INDEX_BITS;
		f->group = g->number;
		f->bytes = 0;
		f->segments = 0;
		count(FLOWCELLS, 1);
	}
	number = (f->cell << INDEX_BITS) + f->segments;
	f->bytes += payload;
	f->segments += segments;
	return number;
}

/*
 * The beginning or the end of a connection without payload is of the same
 * flowcell as what was sent last, and so cannot overtake it. Of an unknown flow
 * it keeps the kernel's ID but for the index, which might be the one that numbers
 * never have.
 */
static __always_inline __u16 edge_number(const struct flow_key *key, __u16 id)
{
	const struct flow *f = bpf_map_lookup_elem(&flows, key);

	return f ? (f->cell << INDEX_BITS) + f->segments - 1 : id >> INDEX_BITS << INDEX_BITS;
}

/*
 * cut numbers a TCP packet. It changes the copy of the header only: packets of
 * TCP's are clones, whose headers may be written to when there is room made for
 * the outer one. Bare acknowledgements are not numbered.
 */
static __always_inline void cut(struct ipv4 *ip, const struct tcp *tcp, __u64 hash, const struct group *g,
				__u32 length, __u32 segments)
{
	struct flow_key key = { ip->saddr, ip->daddr, tcp->ports };
	__u32 headers = sizeof(*ip) + (tcp->offset >> 4) * 4;

	if (tcp->offset >> 4 < 5 || headers > length)
		return; /* the receiver will refuse it */
	if (length > headers)
		write_id(ip, next_number(&key, hash, g, length - headers, segments));
	else if (tcp->flags & (FIN | SYN | RST))
		write_id(ip, edge_number(&key, bpf_ntohs(ip->id)));
}
