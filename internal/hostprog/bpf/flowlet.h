/*
 * Cuts TCP into flowlets: a packet with payload behind a pause of its flow that is longer
 * than the group's gap takes another path, and the flow keeps to it until the next pause (CONGA
 * §3.4). It is weft/flowcell.Cutter for flowlets, for all of the host's own addresses: no
 * sender has to number. Paths are drawn (choice.h), or by conga.h. Behind cutter.h, whose table
 * it uses: cell is the tag of the path there, and longs stays 0.
 */

#define OPEN 1 /* of flow.segments: data was sent, so that last is known, and step */
#define NO_STEP MAX_PATHS

/* start has a flowlet begin by a step. */
static __always_inline void start(struct flow *f, const struct group *g, __u32 step)
{
	f->step = step;
	f->group = g->number;
	f->segments |= OPEN;
}

/* start_informed is start by what reports say. leave is LEAVE where last may be dead. */
static __always_inline void start_informed(struct flow *f, const struct group *g, struct peer *p, __be32 host,
					   __u32 leave)
{
	__u32 last = f->segments & OPEN && f->group == g->number ? leave | (__u32)f->cell << 16 | f->step : NO_STEP;
	struct traffic *t;

	p->sends = 1;
	last = least_congested(g->number, host, last);
	start(f, g, last & 0xffff);
	f->cell = last >> 16 & (TAGS - 1);
	count(FLOWCELLS, 1);
	t = bpf_map_lookup_elem(&bounces, &g->order[f->step & (MAX_PATHS - 1)]);
	if (t)
		t->flowcells++;
}

/* mark_of says what a packet has in its ID: that of data goes by path and turn, as
 * dataplane's informed.mark. 0: nothing. */
static __always_inline __u32 mark_of(struct peer *p, __be32 host, const struct flow *data)
{
	__u32 id;

	if (!data)
		return p->news ? report(host) : 0;
	p->turn = !p->turn;
	if (p->turn) {
		id = p->news ? report(host) : 0;
		if (id)
			return id;
		p->turn = 0;
	}
	return (__u32)data->cell << MARK_TAG_SHIFT | MARK_INDEX;
}

/* mark marks a packet if its header has room for that. */
static __always_inline void mark(struct inner *in, struct peer *p, const struct flow *data)
{
	__u32 id;

	if (in->six || in->v4.tos >> 2)
		return;
	id = mark_of(p, in->v4.daddr, data);
	if (id)
		put_mark(&in->v4, id);
}

/* payload_of is how many bytes of payload a TCP packet has; 0 of one that the receiver will refuse. */
static __always_inline __u32 payload_of(const struct inner *in, const struct tcp *tcp)
{
	__u32 headers = in->header + (tcp->offset >> 4) * 4;

	return tcp->offset >> 4 >= 5 && headers < in->length ? in->length - headers : 0;
}

/* with_data reports whether a packet without payload goes with its flow's last data: it begins or ends the
 * connection, and that data was just now (flowcell.Cutter.Edge). */
static __always_inline int with_data(const struct flow *f, const struct tcp *tcp, const struct group *g, __u32 now)
{
	return f && tcp->flags & (FIN | SYN | RST) && f->segments & OPEN && f->group == g->number &&
	       now - f->last <= LEAST_TIMEOUT;
}

#define TIMEOUT 2

/* begins reports whether a flowlet begins with data that ends at a sequence number: TIMEOUT if that
 * is sent again because of a timeout. */
static __always_inline int begins(struct flow *f, const struct group *g, __u32 end, __u32 now)
{
	int again = f->segments & OPEN && (__s32)(end - f->highest) <= 0;
	__u32 pause = now - f->last;

	if (!again)
		f->highest = end;
	f->last = now;
	if (again && pause > LEAST_TIMEOUT)
		return TIMEOUT;
	return !(f->segments & OPEN) || f->group != g->number || pause > g->gap;
}

/* flowlet returns the step of a TCP packet. Packets without payload are no part of a flowlet:
 * each acknowledgement takes any path. It is a function of its own for the same reason as draw. */
static __noinline __u32 flowlet(struct inner *in, const struct tcp *tcp, const struct rack *rack,
				const struct group *g)
{
	struct flow_key key = flow_of(in, tcp->ports);
	struct flow *f = bpf_map_lookup_elem(&flows, &key);
	__u32 payload = payload_of(in, tcp), now = ticks();

	if (!payload)
		return with_data(f, tcp, g, now) ? f->step : bpf_get_prandom_u32();
	if (!f) {
		struct flow first = { .group = g->number };

		remember(&key, &first);
		f = bpf_map_lookup_elem(&flows, &key);
		if (!f)
			return 0;
	}
	if (begins(f, g, bpf_ntohl(tcp->seq) + payload, now))
		start(f, g, begin(&key, rack, g, 0));
	return f->step;
}

/* informed_flowlet is flowlet by CONGA: it also marks the packet. */
static __noinline __u32 informed_flowlet(struct inner *in, const struct tcp *tcp, const struct group *g,
					 __u32 segments)
{
	struct flow_key key = flow_of(in, tcp->ports);
	__u32 payload = payload_of(in, tcp), now = ticks();
	__be32 host = in->six ? 0 : in->v4.daddr;
	struct peer *p = peer_of(host);
	struct flow *f = departs(&key, bpf_map_lookup_elem(&flows, &key), tcp, payload);
	int new;

	if (!p)
		return bpf_get_prandom_u32();
	if (!payload) {
		if (with_data(f, tcp, g, now))
			return f->step;
		if (!(tcp->flags & (FIN | SYN | RST)))
			mark(in, p, NULL);
		return bpf_get_prandom_u32();
	}
	if (!f)
		return 0;
	new = begins(f, g, bpf_ntohl(tcp->seq) + payload, now);
	if (new)
		start_informed(f, g, p, host, new == TIMEOUT ? LEAVE : 0);
	in->tagged = f->cell + 1;
	if (segments <= MOST_MARKED)
		mark(in, p, f);
	return f->step;
}
