/* CONGA at a leaf switch (§3): how busy paths are, the choice among them, marks and reports. */

/* decayed is dre_decayed, where the clock of another CPU may be ahead. */
static __always_inline __u64 decayed(__u64 x, __u64 ticks)
{
	return (__s64)ticks > 0 ? dre_decayed(x, ticks) : x;
}

static __always_inline void sent(__u32 uplink, __u32 bytes, __u64 now)
{
	struct dre *d = bpf_map_lookup_elem(&local, &uplink);
	__u64 tick, x;

	if (!d || !d->target || !d->tick)
		return;
	tick = now / d->tick;
	bpf_spin_lock(&d->lock);
	x = decayed(d->x, tick - d->ticked) + (__u64)bytes * DRE_SCALE;
	if ((__s64)(tick - d->ticked) > 0)
		d->ticked = tick;
	d->x = x < DRE_MOST ? x : DRE_MOST;
	bpf_spin_unlock(&d->lock);
}

/* metric_of is max(local, remote) of a tag, the local one that of its uplink, the remote one
 * aged as conga.Table does. It is global, as are those that follow: the verifier then looks at
 * each once. */
__noinline __u32 metric_of(__u32 number, __u32 tag, __u32 uplink, __u64 now)
{
	struct dre *d = bpf_map_lookup_elem(&local, &uplink);
	struct outward *row = bpf_map_lookup_elem(&to, &number);
	__u32 here = 0, there = 0;
	__u64 lost;
	__s64 over;

	if (d && d->target && d->tick)
		here = dre_level(decayed(d->x, now / d->tick - d->ticked), d->target);
	if (row) {
		there = row->metric[tag & (TAGS - 1)];
		over = now - row->at[tag & (TAGS - 1)] - age;
		if (there && over > 0) {
			lost = 1 + (__u64)over * 8 / age;
			there = lost < there ? there - lost : 0;
		}
	}
	return (here > there ? here : there) & MAX_METRIC;
}

/* is_zero is 1 or 0, without a branch. */
static __always_inline __u32 is_zero(__u32 x)
{
	return ((__u64)x - 1) >> 63;
}

/* least_busy is CONGA's choice (§3.5): among equals the flow's latest path, or a random one. */
__noinline __u32 least_busy(__u32 number, __u32 last, __u64 now)
{
	struct rack *r = bpf_map_lookup_elem(&racks, &number);
	__u32 zero = 0, least, equals = 0, levels = 0, n, weight;
	struct engine *e = bpf_map_lookup_elem(&engines, &zero);
	__u64 metrics = 0; /* 4 bits for each tag; from 8 on there is no path */

	if (!r || !e)
		return NO_PATH;
#pragma unroll
	for (__u32 tag = 0; tag < TAGS; tag++) {
		__u32 m = metric_of(number, tag, r->uplink[tag], now) | is_zero(r->start[tag + 1] - r->start[tag]) << 3;

		metrics |= (__u64)m << 4 * tag;
		levels |= 1u << m;
	}
	for (least = 0; least < MAX_METRIC; least++) {
		if (levels >> least & 1)
			break;
	}
	if (last < MAX_PATHS && (metrics >> 4 * (r->tag[last & (MAX_PATHS - 1)] & (TAGS - 1)) & 15) == least)
		return last;
#pragma unroll
	for (__u32 tag = 0; tag < TAGS; tag++)
		equals += (r->start[tag + 1] - r->start[tag]) * is_zero((metrics >> 4 * tag & 15) ^ least);
	n = below(e, equals);
#pragma unroll
	for (__u32 tag = 0; tag < TAGS; tag++) {
		weight = (r->start[tag + 1] - r->start[tag]) * is_zero((metrics >> 4 * tag & 15) ^ least);
		if (n < weight)
			return r->order[(r->start[tag] + n) & (MAX_PATHS - 1)];
		n -= weight;
	}
	return NO_PATH;
}

/* next_report is conga.Table.NextFeedback: a mark, 0 if there is nothing to report. */
static __always_inline __u32 next_report(struct inward *row, __u64 now)
{
	__u32 news = row->news, changed = 0, which, tag = 0, metric;

#pragma unroll
	for (__u32 i = 0; i < TAGS; i++) { /* without a branch */
		__u32 stale = (age - (now - row->at[i])) >> 63;

		news &= ~(stale << i);
		changed |= (1 - is_zero(row->fed[i] ^ row->ce[i]) | (~row->known >> i & 1)) << i;
	}
	changed &= news;
	which = changed ? changed : news;
	if (!which) {
		row->news = news;
		return 0;
	}
	for (__u32 k = 0; k < TAGS; k++) {
		tag = (row->next + k) & (TAGS - 1);
		if (which >> tag & 1)
			break;
	}
	tag &= TAGS - 1;
	metric = row->ce[tag];
	row->fed[tag] = metric;
	row->known |= 1u << tag;
	row->news = news & ~(1u << tag);
	row->next = (tag + 1) & (TAGS - 1);
	return MARK_FEEDBACK | tag << MARK_TAG_SHIFT | metric << MARK_SHIFT | MARK_INDEX;
}

/* mark_for is the mark of a packet to a rack: its path's tag, or in every other packet a
 * report, if there is one. */
__noinline __u32 mark_for(__u32 number, __u32 tag, __u64 now)
{
	struct inward *row = bpf_map_lookup_elem(&from, &number);
	__u32 mark;

	if (row) {
		row->turn ^= 1;
		if (row->turn & 1) {
			mark = next_report(row, now);
			if (mark)
				return mark;
			row->turn = 0;
		}
	}
	return (tag & (TAGS - 1)) << MARK_TAG_SHIFT | MARK_INDEX;
}

struct tcp {
	__be16 source, dest;
	__be32 seq, ack;
	__u8 offset, flags;
};

#define TCP_FIN 1
#define TCP_SYN 2
#define TCP_RST 4
#define TCP_ACK 16

/* departs takes note of what a flow of the rack has in flight, if its place is its own:
 * balance.Leaf.Departs. */
static __noinline void departs(struct __sk_buff *skb, __u32 number, __u64 flow, __u32 header, __u32 length)
{
	__u32 place = (__u32)flow % FLOWS, headers, seq, end;
	struct flow *f = bpf_map_lookup_elem(&flows, &place);
	struct tcp tcp;

	if (!f || f->who != flow >> 32 || f->rack != number || bpf_skb_load_bytes(skb, IP + header, &tcp, sizeof(tcp)) ||
	    tcp.flags & TCP_RST)
		return;
	headers = header + (tcp.offset >> 4) * 4;
	if (headers > length)
		return;
	seq = bpf_ntohl(tcp.seq);
	end = seq + (length - headers) + (tcp.flags & TCP_FIN);
	if (tcp.flags & TCP_SYN)
		seq = end = seq + 1;
	if (!f->seen || tcp.flags & TCP_SYN || ((__s32)(end - f->low) < 0 && f->low - end > MAX_WINDOW)) {
		f->low = seq;
		f->highest = end;
		f->seen = 1;
	} else if ((__s32)(end - f->highest) > 0) {
		f->highest = end;
	}
	if (f->highest - f->low > MAX_WINDOW)
		f->low = f->highest - MAX_WINDOW;
}

/* acknowledged reports a packet from another rack that acknowledges what this rack has in
 * flight there: balance.Leaf.Acknowledged. Others than its receiver's rack would have to guess. */
static __noinline int acknowledged(struct __sk_buff *skb, __u32 number, const struct ipv4 *ip, __u64 now)
{
	__u64 flow = flow_of(skb, ip, 1);
	__u32 place = (__u32)flow % FLOWS, ack;
	struct flow *f = bpf_map_lookup_elem(&flows, &place);
	struct tcp tcp;

	if (!f || f->who != flow >> 32 || f->rack != number || !f->seen || now - f->last > KEEP ||
	    bpf_skb_load_bytes(skb, IP + header_length(ip), &tcp, sizeof(tcp)) || !(tcp.flags & TCP_ACK))
		return 0;
	ack = bpf_ntohl(tcp.ack);
	if (ack - f->low > f->highest - f->low)
		return 0;
	f->low = ack;
	return 1;
}

/* hear takes in what a packet from another rack says of congestion. */
static __always_inline void hear(__u32 number, __u32 id, __u64 now)
{
	__u32 tag = id >> MARK_TAG_SHIFT & (TAGS - 1), metric = (id & MARK_METRIC) >> MARK_SHIFT;
	struct outward *row;
	struct inward *in;

	count(HEARD, 1);
	if (id & MARK_FEEDBACK) {
		row = bpf_map_lookup_elem(&to, &number);
		if (row) {
			row->metric[tag] = metric;
			row->at[tag] = now;
		}
		return;
	}
	in = bpf_map_lookup_elem(&from, &number);
	if (in) {
		in->ce[tag] = metric;
		in->at[tag] = now;
		in->news |= 1u << tag;
	}
}
