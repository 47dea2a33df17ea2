/*
 * What packets that arrive say of congestion, and which of them are believed: those of a
 * sender that has seen what this host has sent to it. That is weft/internal/dataplane's flights, in the
 * table of flows. Behind conga.h.
 */

#define OVERTAKEN (1 << 20) /* of flights.go */

/* How many acknowledgement numbers of a flow are proof at most, whatever it has in flight. 16 MB are what
 * 100 Gbit/s carry in 1.3 ms. */
#define MOST_PROOF ((16 << 20) + OVERTAKEN)

/*
 * departs takes note of what a flow has in flight, also of packets without payload. It tells a
 * host that has seen it from one that guesses: flights.record. f is NULL for a new flow, which it
 * adds.
 */
static __always_inline struct flow *departs(const struct flow_key *key, struct flow *f, const struct tcp *tcp,
					    __u32 payload)
{
	__u32 seq = bpf_ntohl(tcp->seq), end = seq + payload + (tcp->flags & FIN);

	if (tcp->flags & RST)
		return f;
	if (tcp->flags & SYN)
		seq = end = end + 1;
	if (!f) {
		struct flow first = { .low = seq, .highest = end };

		remember(key, &first);
		return bpf_map_lookup_elem(&flows, key);
	}
	if (tcp->flags & SYN || ((__s32)(end - f->low) < 0 && f->low - end > OVERTAKEN)) {
		f->low = seq;
		f->highest = end;
		f->segments = 0;
	} else if ((__s32)(end - f->highest) > 0 && !payload) {
		f->highest = end; /* of data flowlet does that */
	}
	if ((__s32)(end - f->low) > MOST_PROOF)
		f->low = end - MOST_PROOF;
	return f;
}

/* acknowledged is flights.acknowledged of what a packet that comes in acknowledges. It has to see all of
 * them, also those without a mark. */
static __always_inline int acknowledged(const struct flow_key *key, __u32 ack)
{
	struct flow *f = bpf_map_lookup_elem(&flows, key);

	if (!f || ack - f->low > f->highest - f->low + 1) /* a FIN behind data is not in highest */
		return 0;
	if (ack - f->low > OVERTAKEN)
		f->low = ack - OVERTAKEN;
	return 1;
}

/* heed takes in the mark of a packet from a host that has shown that it sees what is sent to it. */
static __always_inline void heed(__be32 from, __u16 id)
{
	__u32 tag = id >> MARK_TAG_SHIFT & (TAGS - 1), m = (id & MARK_METRIC) >> MARK_SHIFT;
	struct peer *p;

	if (id & MARK_FEEDBACK) {
		p = bpf_map_lookup_elem(&peers, &from);
		if (!p || !p->sends)
			return;
		p->metric[tag] = m;
		p->at[tag] = nanos();
		p->reported |= 1 << tag;
		return;
	}
	p = peer_of(from);
	if (!p)
		return;
	p->ce[tag] = m;
	p->arrived[tag] = nanos();
	p->news |= 1 << tag;
}
