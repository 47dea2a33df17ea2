// Balances at a leaf switch for plain hosts of its rack (CONGA §3, Luopan §3):
// weft/internal/balance, whose Leaf decides in the same way.
//
// Runs at tc ingress of all of the switch's ports. What comes from a host and goes to another
// rack gets an outer header to the bouncing switch of a path, as weft's hosts write it; routes
// and neighbours stay the kernel's. One table serves the whole rack.
//
//	conga   a flowlet takes the path with the least max(local, remote). The inner IPv4 ID
//	        carries the mark (weft/conga.Mark), on which the switches' meters write. The
//	        leaf at the other end keeps it and reports it, and takes it off.
//	luopan  a flowcell takes the best of d sampled paths. Samples (weft/encap.Sample) are
//	        made of copies of the packets that are sent; the leaf at the other end answers
//	        for its rack.
//
// A packet that cannot have a path is left to the kernel's routes.

#include "packet.h"

#define PROTO_UDP 17
#define PROTO_DCCP 33
#define PROTO_SCTP 132

#define MAX_PATHS 1024 /* balance.MaxLeafPaths */
#define MAX_RACKS 4096
#define MAX_ROUTES 65536
#define FLOWS 65536
#define TAGS 16
#define MAX_METRIC 7
#define MAX_SAMPLES 4
#define MAX_SEGMENTS 62 /* that count up from a mark's index and stay within it */
#define NO_PATH 0xffffffff
#define OWN 0xffffffff /* number of the switch's own rack */

#define HOP_LIMIT 64
#define FLOWCELL 65536 /* bytes */
#define KEEP 1000000000ULL /* ns without a packet after which a flowcell has ended, and a flow proves nothing */

#define MARK_DSCP 9
#define MARK_FEEDBACK 0x8000
#define MARK_TAG 11
#define MARK_METRIC 8
#define MARK_INDEX 1

#define DRE_FACTOR ((1 << 16) - (1 << 12)) /* 1 - alpha in 2^-16 */
#define DRE_FORGOTTEN 256
#define DRE_SCALE 256
#define DRE_LEVELS 8
#define DRE_MOST (1ULL << 47)

#define SAMPLE_PORT bpf_htons(9337)
#define SAMPLE_MAGIC bpf_htonl(0x77666c73)
#define SAMPLE_ACK 0x80
#define SAMPLE_QUEUE 0x7f
#define SAMPLE_VERSION 1
#define PATIENCE 10000000ULL /* ns that a round's answers may take at least, and are good for behind their round */
#define MAX_PATIENCE 1000000000ULL
#define PROBE 0x77660000 /* the mark of a packet's copy of which a sample is made; below it, which one */
#define ANSWERS 400 /* to others' samples by a CPU in a span */
#define SPAN 10000000ULL

/* The order of fabric.LeafStats, behind that of fabric.BalanceStats. */
enum {
	CHOSEN, PLAIN, BEGUN, EVICTED,
	GUIDED, TOO_LONG, REFUSED, MARKED, HEARD, UNPROVEN, SAMPLED, LEARNED, UNASKED, ANSWERED, UNANSWERED, NUM_COUNTERS
};

#include "count.h"

/* balance.Kind */
enum { CONGA = 9, LUOPAN = 10 };

const volatile __u32 rule, samples;
const volatile __u64 gap, age, expiry, seed;

/* Instead of the monotonic clock, if it is not 0. Tests set it. */
volatile __u64 clock;

static __always_inline __u64 time_now(void)
{
	__u64 test = clock;

	return test ? test : bpf_ktime_get_ns();
}

struct destination {
	__u32 bits;
	__be32 addr;
};

/* The paths to a rack: balance.LeafRack. */
struct rack {
	__u32 n; /* live paths */
	__u32 number;
	__u32 start[TAGS + 1]; /* where in order the paths of a tag begin */
	__u32 unused;
	__be32 bounce[MAX_PATHS]; /* by path; 0: it is not live */
	__u16 order[MAX_PATHS]; /* live paths by tag */
	__u8 tag[MAX_PATHS]; /* by path */
};

/* balance.LeafFlow */
struct flow {
	__u32 who;
	__u32 rack;
	__u64 last; /* ns of the clock: when its latest packet came; 0: the place is free */
	__u32 bytes; /* of the flowcell */
	__u32 path;
};

/* balance.DRE */
struct dre {
	struct bpf_spin_lock lock;
	__u32 unused;
	__u64 tick; /* ns */
	__u64 target; /* x at the full rate; 0: that is not known */
	__u64 x; /* bytes in 2^-8 */
	__u64 ticked;
};

/* Rows of the Congestion-To and the Congestion-From table. */
struct outward {
	__u64 at[TAGS];
	__u8 metric[TAGS];
};

struct inward {
	__u64 at[TAGS];
	__u8 ce[TAGS];
	__u8 fed[TAGS];
	__u32 known, news; /* a bit for each tag */
	__u32 next;
	__u32 turn; /* 1: the latest mark was a report */
};

/* Samples of the paths to a rack: balance.LeafSamples. */
struct sampling {
	__u64 due; /* when the next round begins */
	__u64 began;
	__u64 until; /* how long the best path may be taken */
	__u64 rank; /* of the best path */
	__u64 rtt;
	__u64 round; /* the number of the latest */
	__u64 shown; /* the round of the best path */
	__u64 token[MAX_SAMPLES]; /* 0: answered, or none */
	__u32 path[MAX_SAMPLES];
	__be32 host; /* who is asked */
	__be32 source; /* in whose name */
	__u32 best;
	__u32 silent; /* rounds without an answer in a row */
};

struct port {
	__u32 to_hosts;
	__u32 room; /* the longest IP packet that all ports to the fabric take, with its outer header */
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, __u32);
	__type(value, struct port);
} ports SEC(".maps");

/* By destination the number of a rack. The loader writes these. */
struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(max_entries, MAX_ROUTES);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct destination);
	__type(value, __u32);
} prefixes SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MAX_RACKS);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, __u32);
	__type(value, struct rack);
} racks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, FLOWS);
	__type(key, __u32);
	__type(value, struct flow);
} flows SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, TAGS);
	__type(key, __u32);
	__type(value, struct dre);
} local SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MAX_RACKS);
	__type(key, __u32);
	__type(value, struct outward);
} to SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MAX_RACKS);
	__type(key, __u32);
	__type(value, struct inward);
} from SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MAX_RACKS);
	__type(key, __u32);
	__type(value, struct sampling);
} sampled SEC(".maps");

/* Hosts of the rack that encapsulate by themselves, and read marks by themselves. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1024);
	__type(key, __be32);
	__type(value, __u8);
} speakers SEC(".maps");

struct engine {
	__u64 random;
	__u64 span; /* when it began */
	__u64 answers; /* in it */
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct engine);
} engines SEC(".maps");

static __always_inline __u64 mix(__u64 x)
{
	x ^= x >> 33;
	x *= 0xff51afd7ed558ccd;
	x ^= x >> 33;
	x *= 0xc4ceb9fe1a85ec53;
	return x ^ x >> 33;
}

/* below is a random number below n. */
static __always_inline __u32 below(struct engine *e, __u32 n)
{
	__u64 x = e->random;

	if (!x) /* the first on this CPU */
		x = (__u64)bpf_get_prandom_u32() << 32 | bpf_get_prandom_u32() | 1;
	x ^= x >> 12;
	x ^= x << 25;
	x ^= x >> 27;
	e->random = x;
	return (x * 0x2545f4914f6cdd1d >> 32) * n >> 32;
}

/* plain leaves a packet to the kernel's routes. */
static __always_inline int plain(void)
{
	return pass(PLAIN);
}

static __always_inline __u32 rack_of(__be32 addr)
{
	struct destination key = { 32, addr };
	__u32 *number = bpf_map_lookup_elem(&prefixes, &key);

	return number ? *number : NO_PATH - 1;
}

/* The five-tuple of a flow; swapped is that of the other direction. */
static __always_inline __u64 flow_of(struct __sk_buff *skb, const struct ipv4 *ip, int swapped)
{
	__u32 src = bpf_ntohl(ip->saddr), dst = bpf_ntohl(ip->daddr), two = 0;
	__be32 raw;

	switch (ip->protocol) {
	case PROTO_TCP:
	case PROTO_UDP:
	case PROTO_DCCP:
	case PROTO_SCTP:
		if (!(ip->frag_off & FRAGMENT) && header_length(ip) >= sizeof(*ip) &&
		    !bpf_skb_load_bytes(skb, IP + header_length(ip), &raw, sizeof(raw)))
			two = bpf_ntohl(raw);
	}
	if (swapped) {
		__u32 t = src;

		src = dst;
		dst = t;
		two = two << 16 | two >> 16;
	}
	return mix(mix(seed ^ ((__u64)src << 32 | dst)) ^ ((__u64)ip->protocol << 32 | two));
}

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

/* least_sampled is Luopan's choice (§3.2): the best sample's path while it is good, else a
 * random one. */
__noinline __u32 least_sampled(__u32 number, __u64 now)
{
	__u32 zero = 0;
	struct rack *r = bpf_map_lookup_elem(&racks, &number);
	struct sampling *s = bpf_map_lookup_elem(&sampled, &number);
	struct engine *e = bpf_map_lookup_elem(&engines, &zero);

	if (!s || !e || !r)
		return NO_PATH;
	if (now < s->until && s->best < MAX_PATHS && r->bounce[s->best & (MAX_PATHS - 1)]) {
		count(GUIDED, 1);
		return s->best;
	}
	return r->order[below(e, r->n) & (MAX_PATHS - 1)];
}

/* path_of returns the path of a packet's flowlet or flowcell. Two CPUs that write a place at
 * the same time may begin one more. */
static __always_inline __u32 path_of(const struct rack *r, __u64 flow, __u32 length, __u64 now)
{
	__u32 place = (__u32)flow % FLOWS, who = flow >> 32, last = NO_PATH, path;
	struct flow *f = bpf_map_lookup_elem(&flows, &place);
	int lives, same;

	if (!f)
		return NO_PATH;
	lives = f->last && now - f->last <= (rule == CONGA ? gap : KEEP);
	same = f->who == who && f->rack == r->number && f->last && f->path < MAX_PATHS &&
	       r->bounce[f->path & (MAX_PATHS - 1)];
	path = f->path;
	if (!same || !lives || (rule == LUOPAN && f->bytes + length > FLOWCELL)) {
		count(BEGUN, 1);
		if (lives && f->who != who)
			count(EVICTED, 1);
		if (same)
			last = f->path;
		path = rule == CONGA ? least_busy(r->number, last, now) : least_sampled(r->number, now);
		f->who = who;
		f->rack = r->number;
		f->path = path;
		f->bytes = 0;
	}
	f->bytes += length;
	f->last = now;
	return path;
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

/* relabel gives an IPv4 header another DSCP and ID. ip has what is there. */
static __always_inline int relabel(struct __sk_buff *skb, __u32 at, struct ipv4 *ip, __u8 dscp, __be16 id)
{
	struct ipv4 was = *ip;
	__be32 old[2], new[2];

	ip->tos = dscp << 2 | (ip->tos & ECN_MASK);
	ip->id = id;
	__builtin_memcpy(old, &was, sizeof(old));
	__builtin_memcpy(new, ip, sizeof(new));
	ip->check = ~fold(bpf_csum_diff(old, sizeof(old), new, sizeof(new), (__u16)~ip->check));
	return bpf_skb_store_bytes(skb, at, ip, sizeof(*ip), 0);
}

static __always_inline int outermost(struct __sk_buff *skb, const struct ipv4 *ip, __u32 length, __be32 bounce)
{
	struct {
		struct ipv4 outer, inner;
	} h = {
		.outer = {
			.version_ihl = 0x45,
			.tos = ip->tos, /* RFC 6040 §4.1, normal mode */
			.tot_len = length + sizeof(h.outer) > 0xffff ? 0 : bpf_htons(length + sizeof(h.outer)),
			.id = ip->id,
			.frag_off = ip->frag_off & DONT_FRAGMENT,
			.ttl = HOP_LIMIT,
			.protocol = PROTO_IPIP,
			.saddr = ip->saddr,
			.daddr = bounce,
		},
		.inner = *ip,
	};

	h.outer.check = ~fold(bpf_csum_diff(0, 0, (__be32 *)&h.outer, sizeof(h.outer), 0));
	if (bpf_skb_adjust_room(skb, sizeof(h.outer), BPF_ADJ_ROOM_MAC,
				BPF_F_ADJ_ROOM_FIXED_GSO | BPF_F_ADJ_ROOM_NO_CSUM_RESET | BPF_F_ADJ_ROOM_ENCAP_L3_IPV4))
		return pass(REFUSED);
	if (bpf_skb_store_bytes(skb, IP, &h, sizeof(h), 0))
		return drop(REFUSED); /* the room cannot be given back */
	return pass(CHOSEN);
}

/* A sample: encap.Sample. */
struct sample {
	struct ipv4 ip;
	__be16 source, dest, length;
	__sum16 check;
	__be32 magic, word;
	__u8 version, meters, marked, unused;
	__be32 token[2], received[2], reserved;
};

/* write_sample makes a packet of at least a sample's length the sample s, behind an outer
 * header. All of s but the token, addresses and what an answer says is filled in. */
static __always_inline int write_sample(struct __sk_buff *skb, struct sample *s, __be32 bounce, __u32 room)
{
	struct {
		struct ipv4 outer;
		struct sample s;
	} h = {
		.outer = {
			.version_ihl = 0x45,
			.tos = ECT0,
			.tot_len = bpf_htons(sizeof(h)),
			.frag_off = DONT_FRAGMENT,
			.ttl = HOP_LIMIT,
			.protocol = PROTO_IPIP,
			.saddr = s->ip.saddr,
			.daddr = bounce,
		},
	};
	__u32 sum;

	s->ip.version_ihl = 0x45;
	s->ip.tos = ECT0;
	s->ip.tot_len = bpf_htons(sizeof(*s));
	s->ip.id = 0;
	s->ip.frag_off = DONT_FRAGMENT;
	s->ip.ttl = HOP_LIMIT;
	s->ip.protocol = PROTO_UDP;
	s->ip.check = 0;
	s->ip.check = ~fold(bpf_csum_diff(0, 0, (__be32 *)&s->ip, sizeof(s->ip), 0));
	s->source = s->dest = SAMPLE_PORT;
	s->length = bpf_htons(sizeof(*s) - sizeof(s->ip));
	s->magic = SAMPLE_MAGIC;
	s->version = SAMPLE_VERSION;
	s->check = 0;
	/* The pseudo header: addresses, protocol, length. */
	sum = bpf_csum_diff(0, 0, &s->ip.saddr, 8, bpf_htons(PROTO_UDP) + s->length);
	sum = bpf_csum_diff(0, 0, (__be32 *)&s->source, sizeof(*s) - sizeof(s->ip), sum);
	s->check = ~fold(sum);
	if (!s->check)
		s->check = 0xffff;
	h.outer.check = ~fold(bpf_csum_diff(0, 0, (__be32 *)&h.outer, sizeof(h.outer), 0));
	h.s = *s;
	/* One packet, so there is nothing to tell the kernel of the header inside. It would refuse
	 * that of a packet from which a header has been taken off. */
	if (bpf_skb_change_tail(skb, IP + sizeof(h) - room, 0) || bpf_skb_adjust_room(skb, room, BPF_ADJ_ROOM_MAC, 0))
		return -1;
	return bpf_skb_store_bytes(skb, IP, &h, sizeof(h), 0);
}

/* probe makes a packet's copy a sample of a path to the packet's rack. */
static __noinline int probe(struct __sk_buff *skb)
{
	__u32 i = skb->mark & (MAX_SAMPLES - 1), number, path;
	__be64 token;
	__u32 at = 16, sum;
	__u16 half;
	struct sample s = {};
	struct sampling *round;
	struct rack *r;
	struct ipv4 ip;

	skb->mark = 0;
	if (bpf_skb_load_bytes(skb, IP, &ip, sizeof(ip)) || header_length(&ip) < sizeof(ip))
		return TC_ACT_SHOT;
	number = rack_of(ip.daddr);
	round = bpf_map_lookup_elem(&sampled, &number);
	r = bpf_map_lookup_elem(&racks, &number);
	if (!r || !round || ip.daddr != round->host || ip.saddr != round->source)
		return TC_ACT_SHOT;
	path = round->path[i];
	if (path >= MAX_PATHS || !r->bounce[path & (MAX_PATHS - 1)] || !round->token[i])
		return TC_ACT_SHOT;
	s.ip.saddr = ip.saddr;
	s.ip.daddr = ip.daddr;
	s.word = bpf_htonl(path << 8);
	token = bpf_cpu_to_be64(round->token[i]);
	__builtin_memcpy(s.token, &token, sizeof(s.token));
	/* The kernel of a host beside, as in a lab, may have left the checksum to a device, which
	 * then completes it in the sample, too: from the place of the former header on, at that
	 * of its checksum. Room is made so that this is in the sample's reserved word. There is
	 * what stays the same by that: half of the complement of the sum of all behind. */
	if (ip.protocol == PROTO_UDP) {
		at = 6; /* nothing but zeros */
	} else {
		sum = fold(fold(bpf_csum_diff(0, 0, s.token, sizeof(s.token), 0))) ^ 0xffff;
		half = (sum & 1 ? sum + 0xffff : sum) / 2;
		__builtin_memcpy(&s.reserved, &half, sizeof(half));
	}
	if (write_sample(skb, &s, r->bounce[path & (MAX_PATHS - 1)],
			 offsetof(struct sample, reserved) + sizeof(ip) - header_length(&ip) - at))
		return TC_ACT_SHOT;
	count(SAMPLED, 1);
	return TC_ACT_UNSPEC;
}

static __always_inline __u64 patience(const struct sampling *s)
{
	__u64 p = 4 * s->rtt;

	p = (p > PATIENCE ? p : PATIENCE) << (s->silent < 7 ? s->silent : 7);
	return p < MAX_PATIENCE ? p : MAX_PATIENCE;
}

/* ask begins a round, if one is due: of random paths, one sample each (Luopan §3.1). Its
 * samples go in the name of the packet's sender to the packet's destination. */
static __noinline void ask(struct __sk_buff *skb, const struct rack *r, __be32 source, __be32 host, __u64 now)
{
	__u32 zero = 0, number = r->number, n = samples < r->n ? samples : r->n, mark = skb->mark;
	struct sampling *s = bpf_map_lookup_elem(&sampled, &number);
	struct engine *e = bpf_map_lookup_elem(&engines, &zero);
	__u32 place[MAX_SAMPLES] = { NO_PATH, NO_PATH, NO_PATH, NO_PATH };
	__u64 due;

	if (!s || !e || r->n < 2)
		return;
	due = s->due;
	if ((__s64)(now - due) < 0)
		return;
	if (s->round && s->shown != s->round)
		s->silent = s->silent < 7 ? s->silent + 1 : 7;
	if (__sync_val_compare_and_swap(&s->due, due, now + patience(s)) != due)
		return; /* another CPU's */
	s->began = now;
	s->host = host;
	s->source = source;
	s->round++;
#pragma unroll
	for (__u32 i = 0; i < MAX_SAMPLES; i++) {
		__u32 to = r->n - n + i, at;

		s->token[i] = 0;
		if (i >= n)
			continue;
		at = below(e, to + 1); /* R. Floyd's algorithm */
		if (at == place[0] || at == place[1] || at == place[2] || at == place[3])
			at = to;
		place[i] = at;
		s->path[i] = r->order[at & (MAX_PATHS - 1)];
		s->token[i] = ((__u64)bpf_get_prandom_u32() << 32 | bpf_get_prandom_u32() | 1) ^ (mix(seed ^ now) & ~1ULL);
	}
#pragma unroll
	for (__u32 i = 0; i < MAX_SAMPLES; i++) {
		if (i < n) {
			skb->mark = PROBE | i;
			bpf_clone_redirect(skb, skb->ifindex, BPF_F_INGRESS);
		}
	}
	skb->mark = mark;
}

/* learn takes an answer to one of the latest round's samples; 0 if it is none. */
static __noinline int learn(__u32 number, const struct sample *s, __u64 now)
{
	struct sampling *round = bpf_map_lookup_elem(&sampled, &number);
	__u32 word = bpf_ntohl(s->word), found = 0;
	__u64 token, rank, lasts;

	if (!round)
		return 0;
	__builtin_memcpy(&token, s->token, sizeof(token));
	token = bpf_be64_to_cpu(token);
#pragma unroll
	for (__u32 i = 0; i < MAX_SAMPLES; i++) {
		if (token && round->token[i] == token && round->path[i] == word >> 8 && s->ip.saddr == round->host &&
		    s->ip.daddr == round->source) {
			round->token[i] = 0;
			found = 1;
			break;
		}
	}
	if (!found)
		return 0;
	/* By queue, if switches have written it, else by the round trip. */
	rank = s->meters ? (word & SAMPLE_QUEUE) : (now - round->began) & 0xffffffff;
	if (s->marked)
		rank |= 1ULL << 40;
	if (round->shown != round->round) {
		round->rtt = round->rtt ? round->rtt - round->rtt / 8 + (now - round->began) / 8 : now - round->began;
		lasts = expiry ? expiry : round->rtt > 40000 ? round->rtt : 40000;
		round->shown = round->round;
		round->silent = 0;
		round->due = now + lasts;
		round->until = now + 2 * lasts + (round->rtt > PATIENCE ? round->rtt : PATIENCE);
	} else if (rank >= round->rank) {
		return 1;
	}
	round->rank = rank;
	round->best = word >> 8;
	return 1;
}

/* answer sends another's sample back by the path by which it came, for a host of the rack. */
static __noinline int answer(struct __sk_buff *skb, __u32 number, struct sample *s, __u64 now)
{
	__u32 zero = 0, path = bpf_ntohl(s->word) >> 8;
	struct engine *e = bpf_map_lookup_elem(&engines, &zero);
	struct rack *r = bpf_map_lookup_elem(&racks, &number);
	__be32 host = s->ip.daddr;
	__be64 received;

	if (!e || !r || path >= MAX_PATHS || !r->bounce[path & (MAX_PATHS - 1)])
		return pass(UNANSWERED);
	if (now - e->span >= SPAN)
		e->span = now, e->answers = 0;
	if (e->answers >= ANSWERS)
		return pass(UNANSWERED);
	e->answers++;
	s->word |= bpf_htonl(SAMPLE_ACK);
	s->marked = (s->ip.tos & ECN_MASK) == CE;
	s->unused = 0;
	s->reserved = 0;
	received = bpf_cpu_to_be64(now);
	__builtin_memcpy(s->received, &received, sizeof(received));
	s->ip.daddr = s->ip.saddr;
	s->ip.saddr = host;
	if (write_sample(skb, s, r->bounce[path & (MAX_PATHS - 1)], sizeof(struct ipv4)))
		return drop(UNANSWERED);
	count(ANSWERED, 1);
	return TC_ACT_UNSPEC;
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

/* marked reports a packet that carries a mark of CONGA's, or what claims to be one. */
static __always_inline int marked(const struct ipv4 *ip)
{
	return ip->protocol == PROTO_TCP && ip->tos >> 2 == MARK_DSCP && ip->frag_off & DONT_FRAGMENT &&
	       !(ip->frag_off & FRAGMENT);
}

static __always_inline int from_fabric(struct __sk_buff *skb, struct ipv4 *ip)
{
	__u64 now = time_now();
	struct sample s;
	__u32 number;

	if (rack_of(ip->daddr) != OWN)
		return plain();
	number = rack_of(ip->saddr);
	if (number >= MAX_RACKS)
		return plain();
	if (rule == CONGA && marked(ip)) {
		hear(skb, number, ip, now);
		if (!bpf_map_lookup_elem(&speakers, &ip->daddr))
			relabel(skb, IP, ip, 0, bpf_htons(MARK_INDEX));
		return plain();
	}
	if (rule != LUOPAN || ip->protocol != PROTO_UDP || ip->version_ihl != 0x45 || ip->tot_len != bpf_htons(sizeof(s)) ||
	    ip->frag_off & FRAGMENT || bpf_skb_load_bytes(skb, IP, &s, sizeof(s)) || s.source != SAMPLE_PORT ||
	    s.dest != SAMPLE_PORT || s.magic != SAMPLE_MAGIC || s.version != SAMPLE_VERSION)
		return plain();
	if (!(s.word & bpf_htonl(SAMPLE_ACK)))
		return answer(skb, number, &s, now);
	if (learn(number, &s, now))
		return drop(LEARNED);
	if (bpf_map_lookup_elem(&speakers, &ip->daddr))
		return pass(UNASKED); /* perhaps a host's own */
	return drop(UNASKED);
}

/* each is how many bytes the longest packet is that a super-segment becomes. */
static __always_inline __u32 each(struct __sk_buff *skb, const struct ipv4 *ip, __u32 length, __u32 gso)
{
	__u32 headers = header_length(ip) + 8;
	__u8 offset;

	if (!gso)
		return length;
	if (ip->protocol == PROTO_TCP &&
	    !bpf_skb_load_bytes(skb, IP + header_length(ip) + 12, &offset, sizeof(offset)))
		headers = header_length(ip) + (offset >> 4) * 4;
	return headers + gso;
}

static __always_inline int from_host(struct __sk_buff *skb, struct ipv4 *ip, const struct port *port)
{
	/* Read once: the verifier wants its place in each load. */
	__u32 number, path, length, gso = skb->gso_size;
	/* By 64 bits: without CAP_PERFMON no part of a place may be written to in which the
	 * compiler has kept a pointer. */
	__u64 tag;
	__u64 now = time_now();
	struct rack *r;
	__u8 one = 1;

	/* Only switches, and hosts that encapsulate by themselves, write marks. */
	if (rule == CONGA && marked(ip) && relabel(skb, IP, ip, 0, bpf_htons(MARK_INDEX)))
		return plain();
	if (rack_of(ip->saddr) != OWN)
		return plain();
	if (ip->protocol == PROTO_IPIP) {
		bpf_map_update_elem(&speakers, &ip->saddr, &one, BPF_ANY);
		return plain();
	}
	number = rack_of(ip->daddr);
	if (number >= MAX_RACKS || ip->ttl <= 1)
		return plain();
	r = bpf_map_lookup_elem(&racks, &number);
	if (!r || !r->n)
		return plain();
	/* A super-segment of more than 64 KB has 0 in its header (BIG TCP). */
	length = !ip->tot_len && ip->protocol == PROTO_TCP && gso ? skb->len - IP : bpf_ntohs(ip->tot_len);
	if (each(skb, ip, length, gso) + sizeof(*ip) > port->room)
		return pass(TOO_LONG);
	if (length + sizeof(*ip) > 0xffff && !(gso && ip->protocol == PROTO_TCP))
		return pass(TOO_LONG);
	if (rule == LUOPAN)
		ask(skb, r, ip->saddr, ip->daddr, now);
	path = path_of(r, flow_of(skb, ip, 0), length, now);
	if (path >= MAX_PATHS || !r->bounce[path & (MAX_PATHS - 1)])
		return plain();
	if (rule == CONGA) {
		tag = r->tag[path & (MAX_PATHS - 1)];
		asm volatile("" : "+r"(tag));
		sent(tag & (TAGS - 1), length, now);
		if (ip->protocol == PROTO_TCP && ip->version_ihl == 0x45 && ip->frag_off == DONT_FRAGMENT && !(ip->tos >> 2) &&
		    (!gso || length <= MAX_SEGMENTS * gso)) {
			struct ipv4 was = *ip;
			__be32 old[2], new[2];

			ip->tos |= MARK_DSCP << 2;
			ip->id = bpf_htons(mark_for(number, tag, now));
			__builtin_memcpy(old, &was, sizeof(old));
			__builtin_memcpy(new, ip, sizeof(new));
			ip->check = ~fold(bpf_csum_diff(old, sizeof(old), new, sizeof(new), (__u16)~ip->check));
			count(MARKED, 1);
		}
	}
	return outermost(skb, ip, length, r->bounce[path & (MAX_PATHS - 1)]);
}

SEC("tc") int weft_balance(struct __sk_buff *skb)
{
	__u32 index = skb->ifindex;
	struct port *port = bpf_map_lookup_elem(&ports, &index);
	struct ipv4 ip;

	if (!port)
		return plain();
	if (rule == LUOPAN && (skb->mark & 0xffff0000) == PROBE && port->to_hosts)
		return probe(skb);
	/* What has a mark, a VLAN's tag, or another device's address is not for this port's
	 * routes. */
	if (skb->protocol != bpf_htons(ETH_P_IP) || skb->mark || skb->vlan_present || skb->pkt_type != PACKET_HOST ||
	    bpf_skb_load_bytes(skb, IP, &ip, sizeof(ip)) || !is_ipv4(&ip) || header_length(&ip) < sizeof(ip))
		return plain();
	return port->to_hosts ? from_host(skb, &ip, port) : from_fabric(skb, &ip);
}

char _license[] SEC("license") = "GPL";
