/*
 * Cuts the host's own TCP into flowcells: writes weft/flowcell.Number into the
 * IPv4 ID or the IPv6 flow label, as weft/flowcell.Cutter computes it for flowcells.
 *
 * A flow's packets come one after the other, since the kernel's TCP sends under its
 * socket's lock. If they do not, or if the table of flows has given an entry to
 * another flow while it was in use here, a number may come twice or be left out.
 * That is harmless: a receiver takes a number as a hint.
 */

#define INDEX_BITS 6 /* of a number: the segment in its flowcell */
#define CELL_SEGMENTS 63 /* flowcell.MaxIndex + 1 */

#define FIN 1
#define SYN 2
#define RST 4
#define ACK 16

/* The beginning of a TCP header. */
struct tcp {
	__be32 ports;
	__be32 seq;
	__be32 ack;
	__u8 offset; /* of the payload, in the high 4 bits */
	__u8 flags;
	__be16 window;
};

/* Of IPv6 a hash of the addresses is in their place. Two pairs of hosts that share it, and
 * the ports, have their flows cut as one. */
struct flow_key {
	__be32 saddr;
	__be32 daddr;
	__be32 ports;
};

/* The flowcell under way. Where the sender cuts, all but group, cell and step are 0. Where
 * an IPv6 flow's packets are counted, cell is the number of the next.
 *
 * A super-segment of more segments than a flowcell may have is a flowcell of its own, and the
 * device that cuts it counts through the numbers behind it, which cell leaves out. So steps
 * are counted apart: of numbers that are all even only half of the paths would be used. */
struct flow {
	__u32 group; /* by which its path is */
	union {
		__u32 bytes;
		__u32 low; /* of flowlets by CONGA: the least that an acknowledgement may say */
	};
	__u32 highest; /* sequence number behind all data sent */
	__u32 last; /* tick in which data was last sent */
	__u16 segments;
	__u16 cell; /* its number, of which the low 10 bits count */
	__u16 step; /* of the order: where paths are drawn, the one that was; else counted, 10 bits */
	__u16 longs; /* 1: it has sent super-segments without a length (no_length) */
};

/*
 * When full, the table forgets flows that have sent nothing for long; they go on from
 * their first flowcell. A reused five-tuple does the same, or goes on where the
 * connection before it ended. Receivers believe numbers once they have seen them
 * count on, whatever the first one is. If no flow is cut and no path is drawn, the
 * loader makes the table with one entry.
 */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 65536);
	__type(key, struct flow_key);
	__type(value, struct flow);
} flows SEC(".maps");

/*
 * Time in units of 1,024 ns, which wraps after 73 minutes. A resend within 5 ms of a
 * multiple of that does not count as a timeout's, which does no harm.
 */
#define LEAST_TIMEOUT (5000000 >> 10) /* flowcell.LeastTimeout */

static __always_inline __u32 ticks(void)
{
	return nanos() >> 10;
}

/* write_id mends the checksum, too (RFC 1624 §3). */
static __always_inline void write_id(struct ipv4 *ip, __u16 id)
{
	ip->check = ~fold((__u16)~ip->check + (__u32)(__u16)~ip->id + bpf_htons(id));
	ip->id = bpf_htons(id);
}

/* write_number is weft/flowcell.Number.Stamp: in IPv6 all segments of a flowcell have the
 * number of the first. */
static __always_inline void write_number(struct inner *in, __u16 number)
{
	if (in->six) {
		number &= ~((1 << INDEX_BITS) - 1);
		in->v6.class = (in->v6.class & bpf_htonl(0xffff0000)) | bpf_htonl(number);
	} else {
		write_id(&in->v4, number);
	}
	in->number = number;
}

static __always_inline struct flow_key flow_of(const struct inner *in, __be32 ports)
{
	struct flow_key key = { in->pair >> 32, in->pair, ports };

	if (!in->six) {
		key.saddr = in->v4.saddr;
		key.daddr = in->v4.daddr;
	}
	return key;
}

#define STEPS(n) ((n) & (0xffff >> INDEX_BITS)) /* numbers of flowcells wrap, and steps with them */

/* begin has a flowcell begin, and returns its step, which is next where none is drawn. */
static __always_inline __u16 begin(const struct flow_key *key, const struct rack *rack, const struct group *g, __u16 next)
{
	count(FLOWCELLS, 1);
	return g->mode >= DRAWN ? draw(g, rack, key->daddr) : STEPS(next);
}

/* remember adds a flow. */
static __always_inline void remember(const struct flow_key *key, const struct flow *first)
{
	bpf_map_update_elem(&flows, key, first, BPF_ANY);
	count(FLOWS, 1);
}

static __always_inline void sent_long(__u32 payload)
{
	count(LONG, 1);
	count(LONG_BYTES, payload);
}

/*
 * next_number is flowcell.Cutter.Next for a packet whose payload ends at end. If the
 * flow's path group has changed, it is also flowcell.Cutter.End. The LONG counters tell the
 * loader what flows with long super-segments send, and how much of it again.
 */
static __always_inline __u16 next_number(const struct flow_key *key, __u64 hash, const struct rack *rack,
					 const struct group *g, __u32 end, __u32 payload, __u32 segments, int is_long,
					 __u32 *step)
{
	struct flow *f = bpf_map_lookup_elem(&flows, key);
	__u32 now = ticks(), pause;
	int again;
	__u16 number;

	if (!f) {
		struct flow first = {
			.group = g->number,
			.bytes = payload,
			.highest = end,
			.last = now,
			.segments = segments,
			.cell = hash >> 30, /* the path is by bits above 40 */
			.step = begin(key, rack, g, hash >> 30),
			.longs = is_long,
		};

		if (is_long)
			sent_long(payload);
		remember(key, &first);
		*step = first.step;
		return first.cell << INDEX_BITS;
	}
	again = (__s32)(end - f->highest) <= 0;
	if (!again)
		f->highest = end;
	if (again && f->longs)
		count(LONG_AGAIN, payload);
	if (!again && is_long) {
		f->longs = 1;
		sent_long(payload);
	}
	pause = now - f->last;
	f->last = now;
	if (f->group != g->number || f->bytes + payload > g->cell_bytes ||
	    f->segments + segments > CELL_SEGMENTS || (again && pause > LEAST_TIMEOUT)) {
		f->cell += (f->segments + CELL_SEGMENTS) >> INDEX_BITS;
		f->group = g->number;
		f->bytes = 0;
		f->segments = 0;
		f->step = begin(key, rack, g, f->step + 1);
	}
	number = (f->cell << INDEX_BITS) + f->segments;
	f->bytes += payload;
	f->segments += segments;
	*step = f->step;
	return number;
}

/* in_cell reports whether a number is of the flowcell under way. */
static __always_inline int in_cell(const struct flow *f, __u16 number)
{
	return (__u16)(f->cell << INDEX_BITS) >> INDEX_BITS == number >> INDEX_BITS;
}

/* step_of is the step drawn for the flowcell of a number that the sender wrote. It is a
 * function of its own for the same reason as draw. */
static __noinline __u32 step_of(const struct flow_key *key, __u16 number, const struct rack *rack,
				     const struct group *g)
{
	struct flow *f = bpf_map_lookup_elem(&flows, key);
	struct flow now = { .group = g->number, .cell = number >> INDEX_BITS };

	if (f && f->group == now.group && in_cell(f, number))
		return f->step;
	now.step = begin(key, rack, g, 0);
	if (f)
		*f = now;
	else
		remember(key, &now);
	return now.step;
}

/* just_sent reports whether data was sent so late that what follows could overtake it. */
static __always_inline int just_sent(const struct flow *f)
{
	return f && ticks() - f->last <= LEAST_TIMEOUT;
}

/*
 * edge_number is flowcell.Cutter.Edge. A packet without payload that begins or ends a
 * connection belongs to the flowcell of the last data, so it cannot overtake that
 * data. If no data was sent just before, it takes any path, since it may be sent again
 * after a timeout: the kernel gives all copies of a SYN-ACK one ID. Its number is
 * then random, with an index that numbers may have.
 */
static __always_inline __u16 edge_number(const struct flow *f, int recent)
{
	if (f && recent)
		return (f->cell << INDEX_BITS) + f->segments - 1;
	return bpf_get_prandom_u32() << INDEX_BITS;
}

/*
 * unit finds the flowcell of a TCP packet and returns its step where paths are drawn or the
 * flow is cut.
 * It numbers the packet if its flow is to be cut. It changes only the copy of the
 * header: TCP's packets are clones, whose headers may be written to only after room
 * was made for the outer header. Pure acknowledgements belong to no flowcell: they
 * are not numbered, and each takes any path.
 */
static __always_inline __u32 unit(struct inner *in, const struct tcp *tcp, __u64 hash, const struct rack *rack,
				  const struct group *g, __u32 segments, int cuts)
{
	struct flow_key key = flow_of(in, tcp->ports);
	__u32 headers = in->header + (tcp->offset >> 4) * 4, length = in->length;
	__u32 step = g->mode == DRAWN ? bpf_get_prandom_u32() : in->number >> INDEX_BITS;

	if (tcp->offset >> 4 < 5 || headers > length)
		return step; /* the receiver will refuse it */
	if (length > headers && cuts) {
		write_number(in, next_number(&key, hash, rack, g, bpf_ntohl(tcp->seq) + length - headers,
					     length - headers, segments, no_length(in), &step));
	} else if (length > headers) {
		step = step_of(&key, in->number, rack, g);
	} else if (tcp->flags & (FIN | SYN | RST)) {
		const struct flow *f = bpf_map_lookup_elem(&flows, &key);
		int recent = just_sent(f), drawn = g->mode == DRAWN;

		if (cuts) {
			write_number(in, edge_number(f, recent));
			if (!drawn)
				step = in->number >> INDEX_BITS;
		}
		if (f && (cuts ? recent : in_cell(f, in->number)) && (!drawn || f->group == g->number))
			step = f->step;
	}
	return step;
}

/* turn counts an IPv6 flow's packets, as the ID does in IPv4. A segment that is sent again
 * has another turn. */
static __always_inline __u32 turn(const struct inner *in, const struct tcp *tcp, const struct group *g)
{
	struct flow_key key = flow_of(in, tcp->ports);
	struct flow *f = bpf_map_lookup_elem(&flows, &key);
	struct flow first = { .group = g->number, .cell = 1 };

	if (f)
		return f->cell++;
	remember(&key, &first);
	return 0;
}
