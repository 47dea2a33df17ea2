/* CONGA at a leaf switch (§3): how busy paths are, the choice among them, marks and reports. */

/* DRE: X shrinks with each tick by a factor (CONGA §3.2). */
static __always_inline __u64 decayed(__u64 x, __u64 ticks)
{
	__u64 factor = DRE_FACTOR;

	if ((__s64)ticks <= 0)
		return x;
	if (ticks >= DRE_FORGOTTEN)
		return 0;
#pragma unroll
	for (int bit = 0; bit < 8; bit++) {
		/* Times one where the bit is not set: a branch would double what the verifier walks. */
		__u64 set = ticks >> bit & 1;

		x = x * (set * factor + (1 - set) * (1 << 16)) >> 16;
		factor = factor * factor >> 16;
	}
	return x;
}

static __always_inline void sent(__u32 tag, __u32 bytes, __u64 now)
{
	struct dre *d = bpf_map_lookup_elem(&local, &tag);
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

/* metric_of is max(local, remote) of a tag, the remote one aged as conga.Table does. It is
 * global, as are those that follow: the verifier then looks at each once. */
__noinline __u32 metric_of(__u32 number, __u32 tag, __u64 now)
{
	struct dre *d = bpf_map_lookup_elem(&local, &tag);
	struct outward *row = bpf_map_lookup_elem(&to, &number);
	__u32 here = 0, there = 0;
	__u64 x, lost;
	__s64 over;

	if (d && d->target && d->tick) {
		x = decayed(d->x, now / d->tick - d->ticked) * DRE_LEVELS / d->target;
		here = x < DRE_LEVELS ? x : MAX_METRIC;
	}
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
		__u32 m = metric_of(number, tag, now) | is_zero(r->start[tag + 1] - r->start[tag]) << 3;

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
	return MARK_FEEDBACK | tag << MARK_TAG | metric << MARK_METRIC | MARK_INDEX;
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
	return (tag & (TAGS - 1)) << MARK_TAG | MARK_INDEX;
}

/* hear takes in what a packet from another rack says of congestion. It counts only in a
 * connection by which this rack sends, too: anybody could send other marks in any name. */
static __noinline void hear(struct __sk_buff *skb, __u32 number, const struct ipv4 *ip, __u64 now)
{
	__u64 flow = flow_of(skb, ip, 1);
	__u32 place = (__u32)flow % FLOWS, id = bpf_ntohs(ip->id);
	__u32 tag = id >> MARK_TAG & (TAGS - 1), metric = id >> MARK_METRIC & MAX_METRIC;
	struct flow *f = bpf_map_lookup_elem(&flows, &place);
	struct outward *row;
	struct inward *in;

	if (!f || f->who != flow >> 32 || f->rack != number || !f->last || now - f->last > KEEP) {
		count(UNPROVEN, 1);
		return;
	}
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
