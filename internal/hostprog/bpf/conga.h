/*
 * CONGA at a sending host (§3): weft/conga.Table, decision for decision. A flowlet takes the
 * path with the least max(local, remote) metric at its first packet. local is what this host
 * has sent by paths of a tag (DRE). remote is what the destination has reported of them. The program
 * at egress marks packets (weft/conga.Mark): those with payload with the tag of their path, and every
 * other one, and pure acknowledgements, with a report on what has come from there. The program at
 * ingress (heed.h) takes the marks in and off.
 *
 * A row is of a host, as hosts' reports must move only what is sent to them. Processors
 * write to a row without a lock: at worst a report is lost, which the next one replaces.
 */

#include "dre.h"
#include "mark.h"

/*
 * Functions that are not static the verifier checks once for all, and not once for each call and
 * each way there. That keeps the program within its bounds. Without CAP_PERFMON it also follows
 * what a processor may do ahead of a condition. So loops are unrolled, since there they have no
 * end, and what they decide is in functions of numbers alone.
 */

#define TAGS 16
#define NOBODY 8 /* above all metrics */
#define MOST_MARKED 62 /* segments: a device that cuts counts through the low bits of a mark's ID */

/* The loader sets these: a tick of a DRE and how long a report has full weight, in ns, and the
 * register of a link that is busy. */
volatile const __u64 dre_tick = 10000, report_age = 10000000, dre_target = 1;

struct dre {
	__u64 tick; /* that x is of */
	__u64 x;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, TAGS);
	__type(key, __u32);
	__type(value, struct dre);
} local SEC(".maps");

/* hostprog.peerValue. */
struct peer {
	__u64 at[TAGS]; /* of the report */
	__u64 arrived[TAGS]; /* the latest packet */
	__u8 metric[TAGS]; /* as reported */
	__u8 ce[TAGS]; /* what the latest packet said */
	__u8 fed[TAGS]; /* what was reported last */
	__u16 reported; /* a bit a tag: of metric */
	__u16 known; /* of fed */
	__u16 news; /* heard of since its last report */
	__u8 next; /* the tag at which the round goes on */
	__u8 turn; /* the latest packet of data had a report */
	__u8 sends; /* flowlets go to it */
	__u8 unused[7];
};

/* By address of IPv4; all of IPv6, whose headers have no room for marks, by 0. The idlest is
 * forgotten. Without CONGA the loader makes room for one. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384); /* conga.Config.MaxDestinations */
	__type(key, __be32);
	__type(value, struct peer);
} peers SEC(".maps");

/* What a new row is. It has no place on the stack. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct peer);
} stranger SEC(".maps");

static __always_inline struct peer *peer_of(__be32 host)
{
	struct peer *p = bpf_map_lookup_elem(&peers, &host);
	__u32 zero = 0;

	if (p)
		return p;
	p = bpf_map_lookup_elem(&stranger, &zero);
	if (!p)
		return NULL;
	bpf_map_update_elem(&peers, &host, p, BPF_NOEXIST);
	count(PEERS, 1);
	return bpf_map_lookup_elem(&peers, &host);
}

/* aged is conga's outward.remote: a metric that was reported at a time. */
static __always_inline __u32 aged(__u32 m, __u64 at, __u64 now)
{
	__u64 over = now - at - report_age, lost;

	if (!m || (__s64)over <= 0)
		return m;
	lost = 1 + over * 8 / report_age;
	return lost < m ? m - lost : 0;
}

/* metric is max(local, remote) of a tag that so many steps have; NOBODY if none. */
__noinline __u32 metric(__u32 tag, __u32 steps, __u32 reported, __u64 at, __u64 now)
{
	struct dre *d = bpf_map_lookup_elem(&local, &tag);
	__u32 here = 0, there = aged(reported, at, now);
	__u64 ticks;

	if (!steps)
		return NOBODY;
	if (d) {
		ticks = now / dre_tick - d->tick;
		here = dre_level((__s64)ticks > 0 ? dre_decayed(d->x, ticks) : d->x, dre_target);
	}
	return here > there ? here : there;
}

/* better adds so many steps with a metric to the best so far: the metric above 16 bits of how many
 * steps have it. */
__noinline __u32 better(__u32 best, __u32 m, __u32 steps)
{
	if (m < best >> 16)
		return m << 16 | steps;
	return m == best >> 16 ? best + steps : best;
}

#define FOUND (1ULL << 63)

/* seek goes on, behind so many steps that do not count or do, to the one of number at of those that
 * count. from is the first of these steps. */
__noinline __u64 seek(__u64 at, __u32 counts, __u32 steps, __u32 from, __u32 tag)
{
	if (at & FOUND || !counts)
		return at;
	return at < steps ? FOUND | tag << 16 | (from + at) : at - steps;
}

/* sent is conga.Table.Sent. */
__noinline __u32 sent(__u32 tag, __u64 bytes)
{
	struct dre *d = bpf_map_lookup_elem(&local, &tag);
	__u64 tick = nanos() / dre_tick, was;

	if (!d)
		return 0;
	was = d->tick;
	if ((__s64)(tick - was) > 0 && __sync_val_compare_and_swap(&d->tick, was, tick) == was)
		d->x = dre_decayed(d->x, tick - was);
	if (d->x < DRE_MOST)
		__sync_fetch_and_add(&d->x, bytes * DRE_SCALE);
	return 0;
}

/* same_path is 1 if two steps of a group have the same path, else 0. */
__noinline __u32 same_path(__u32 group, __u32 step, __u32 other)
{
	struct group *g = bpf_map_lookup_elem(&groups, &group);

	return g && step < g->n && other < g->n && g->order[step & (MAX_PATHS - 1)] == g->order[other & (MAX_PATHS - 1)];
}

/* beside draws a step that has another path than last; last if there is none. The steps of a path, as
 * many as it weighs, follow each other, so the first and the last of them are found by halving. */
__noinline __u32 beside(__u32 group, __u32 n, __u32 last)
{
	__u32 before = 0, behind = 0, others, step;

#pragma unroll
	for (__u32 half = MAX_PATHS / 2; half; half /= 2) {
		before += half * same_path(group, last, last - before - half);
		behind += half * same_path(group, last, last + behind + half);
	}
	others = n - (before + 1 + behind);
	if (!others || others >= n)
		return last;
	step = bpf_get_prandom_u32() % others;
	return step < last - before ? step : step + before + 1 + behind;
}

/*
 * least_congested is conga.Table.Choose: a step of the group's order, whose steps are sorted by
 * tag (group.ends), and 16 bits above it its tag. last is that of the flow's flowlet before, or a step
 * that there is not: it stays if it is among the best (§3.5). With LEAVE above it, a timeout's, the flow
 * takes a path of another tag; where all have one tag, another path; last if that is the only one.
 */
#define LEAVE (1 << 24)
__noinline __u32 least_congested(__u32 group, __be32 host, __u32 last)
{
	struct group *g = bpf_map_lookup_elem(&groups, &group);
	struct peer *p = bpf_map_lookup_elem(&peers, &host);
	__u32 best = NOBODY << 16, from = 0, m;
	__u32 left = last & LEAVE ? last >> 16 & 15 : TAGS; /* no path of that tag if there is another tag */
	__u64 metrics = 0, now = nanos(), at;

	if (!g || !p)
		return 0;
#pragma unroll
	for (__u32 tag = 0; tag < TAGS; tag++) {
		m = tag == left ? NOBODY : metric(tag, g->ends[tag] - from, p->metric[tag], p->at[tag], now);
		best = better(best, m, g->ends[tag] - from);
		metrics |= (__u64)m << tag * 4;
		asm volatile("" : "+r"(metrics)); /* or the compiler keeps each of them on the stack */
		from = g->ends[tag];
	}
	if (left == TAGS && (last & 0xffff) < g->n && (metrics >> (last >> 16 & 15) * 4 & 15) == best >> 16)
		return last;
	if (left < TAGS && best >> 16 == NOBODY)
		return left << 16 | beside(group, g->n, last & 0xffff);
	at = bpf_get_prandom_u32() % (best & 0xffff);
	from = 0;
#pragma unroll
	for (__u32 tag = 0; tag < TAGS; tag++) {
		at = seek(at, (metrics >> tag * 4 & 15) == best >> 16, g->ends[tag] - from, from, tag);
		from = g->ends[tag];
	}
	return at;
}

/* tidings says what is to be reported of a tag: bit 0 is set if a packet not older than report_age has
 * brought something since the last report, and bit 1 if that is not what the last one said. */
__noinline __u32 tidings(__u32 news, __u32 known, __u32 fed, __u32 ce, __u64 age)
{
	if (!news || (__s64)age > (__s64)report_age)
		return 0;
	return known && fed == ce ? 1 : 3;
}

/* in_turn is the first of the tags at or behind next; TAGS if there is none. */
__noinline __u32 in_turn(__u32 tags, __u32 next)
{
	__u32 turned = (tags >> (next & 15) | tags << (TAGS - (next & 15))) & 0xffff, n = 0;

	if (!turned)
		return TAGS;
	if (!(turned & 0xff)) {
		turned >>= 8;
		n += 8;
	}
	if (!(turned & 15)) {
		turned >>= 4;
		n += 4;
	}
	if (!(turned & 3)) {
		turned >>= 2;
		n += 2;
	}
	if (!(turned & 1))
		n++;
	return (next + n) & (TAGS - 1);
}

/* report is conga.Table.NextFeedback as the ID of a packet; 0 if there is nothing to report. */
__noinline __u32 report(__be32 host)
{
	struct peer *p = bpf_map_lookup_elem(&peers, &host);
	__u32 changed = 0, news = 0, tag, t;
	__u64 now = nanos();

	if (!p || !p->news)
		return 0;
#pragma unroll
	for (__u32 i = 0; i < TAGS; i++) {
		t = tidings(p->news >> i & 1, p->known >> i & 1, p->fed[i], p->ce[i], now - p->arrived[i]);
		news |= (t & 1) << i;
		changed |= (t >> 1 & 1) << i;
	}
	tag = in_turn(changed ? changed : news, p->next & (TAGS - 1));
	p->news = news;
	if (tag >= TAGS)
		return 0;
	p->fed[tag] = p->ce[tag];
	p->known |= 1 << tag;
	p->news = news & ~(1 << tag);
	p->next = (tag + 1) & (TAGS - 1);
	return MARK_FEEDBACK | tag << MARK_TAG_SHIFT | (__u32)p->ce[tag] << MARK_SHIFT | MARK_INDEX;
}

/* put_mark writes a mark and its DSCP into a header whose DSCP is 0, and mends its checksum. */
static __always_inline void put_mark(struct ipv4 *ip, __u16 id)
{
	__u16 was = bpf_htons((__u16)ip->version_ihl << 8 | ip->tos), is;

	write_id(ip, id);
	ip->tos |= MARK_DSCP << 2;
	is = bpf_htons((__u16)ip->version_ihl << 8 | ip->tos);
	ip->check = ~fold((__u16)~ip->check + (__u32)(__u16)~was + is);
}
