/* What a leaf switch keeps: behind the constants of leaf.c. */

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
	__u8 uplink[TAGS]; /* by tag: which of local its paths begin with */
};

/* balance.LeafFlow */
struct flow {
	__u32 who;
	__u32 rack;
	__u64 last; /* ns of the clock: when its latest packet came; 0: the place is free */
	__u32 bytes; /* of the flowcell */
	__u32 path;
	__u32 low, highest; /* conga: what an acknowledgement may say, if seen is 1 */
	__u32 seen;
	__u32 unused;
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
	__u64 rank; /* of the idlest path, by queue */
	__u64 quick; /* of the fastest path, by round trip */
	__u64 rtt;
	__u64 round; /* the number of the latest */
	__u64 shown; /* the round of the best path */
	__u64 token[MAX_SAMPLES]; /* 0: answered, or none */
	__u32 path[MAX_SAMPLES];
	__be32 host; /* who is asked */
	__be32 source; /* in whose name */
	__u32 best; /* the idlest one; the fastest if a sample of the round has no queue */
	__u32 silent; /* rounds without an answer in a row */
	__u32 idlest, fastest;
	__u32 unmetered; /* a sample of the round has no queue */
	__u32 unused;
};

/* How many answers a rack has had in a span. */
struct answering {
	__u64 span; /* when it began */
	__u64 answers;
};

struct port {
	__u32 to_hosts;
	__u32 room; /* the longest IP packet that all ports to the fabric take, with its outer header */
	__be32 host[2]; /* addresses of the host there: the kernel's, the embedded stack's */
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
} local SEC(".maps"); /* by uplink modulo TAGS */

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

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MAX_RACKS);
	__type(key, __u32);
	__type(value, struct answering);
} answering SEC(".maps");

/* Hosts of the rack that encapsulate by themselves, and read marks by themselves, and when they
 * did so last. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1024);
	__type(key, __be32);
	__type(value, __u64);
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

/* left leaves a packet to the kernel's routes, which then take a hash of its flow, and not
 * one that its device or its sender has given it (balance.c). */
static __always_inline int left(struct __sk_buff *skb, __u32 why)
{
	bpf_set_hash_invalid(skb);
	return pass(why);
}

static __always_inline int plain(struct __sk_buff *skb)
{
	return left(skb, PLAIN);
}

static __always_inline int speaks(__be32 host, __u64 now)
{
	__u64 *latest = bpf_map_lookup_elem(&speakers, &host);

	return latest && now - *latest < SPEAKS;
}

static __always_inline __u32 rack_of(__be32 addr)
{
	struct destination key = { 32, addr };
	__u32 *number = bpf_map_lookup_elem(&prefixes, &key);

	return number ? *number : NO_RACK;
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
