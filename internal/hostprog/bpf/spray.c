// Spraying at a host's uplink: puts an outer header that names the path (outer.h)
// before the packets that this host sends into the fabric.
//
// A packet that cannot or must not be encapsulated leaves unchanged, counted by
// cause, and the fabric forwards it by its own routes. It is dropped only if the
// loader has set require.
//
// Runs at tc egress of an Ethernet device. The inner IPv4 ID gives the step in a
// flow's order of paths. The kernel's TCP adds one to the ID for every segment; a
// userspace sender of flowcells sets it to the flowcell's number
// (weft/flowcell.Number). If the kernel's TCP is to be cut into flowcells, too, the
// program writes that number (cutter.h). If paths are drawn (choice.h), it remembers
// the path of each flow's flowcell. It keeps no other state. Super-segments stay
// whole.

#include "packet.h"

#define MAX_PATHS 1024 /* hostprog.maxPaths; a power of two */
#define MAX_PREFIXES 65536

/* The order of readOffloadStats in stats_linux.go. */
enum {
	ENCAPSULATED, PASSED, REFUSED, NO_PATH, TOO_LONG, MALFORMED, FLOWS, FLOWCELLS, CHOSEN,
	SEEN, PLAIN, UNATTENDED, BROKEN, NUM_COUNTERS
};

#include "count.h"
#include "heart.h"

/* Whether what cannot be encapsulated is dropped. The loader sets it. */
volatile const __u8 require = 0;

static __always_inline int unable(__u32 why)
{
	return require ? drop(why) : pass(why);
}

/* How a TCP packet's path is chosen; the order of hostprog.sprayMode. */
enum { BY_NUMBER, BY_HASH, RANDOM, DRAWN };

/* This host's own addresses: the outer source is the inner one. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16);
	__type(key, __be32);
	__type(value, __u8); /* 1: its TCP is to be cut into flowcells; 0: its sender numbers */
} own SEC(".maps");

struct prefix {
	__u32 length;
	__be32 addr;
};

/* A way to a rack. */
struct rack {
	__u32 group; /* its paths */
	__u32 number; /* its own */
	__be32 sids[4]; /* of IPv6 what all paths share, 0 where they differ; else 0 */
	__u32 plain; /* 1: packets to it leave as they are */
};

/* The paths to some racks. */
struct group {
	__u32 n; /* how many steps the order has; 0: cut off */
	__u32 mode;
	__u32 shift; /* from an IPv4 ID to a step of the order */
	__u32 cell_bytes; /* TCP payload that a flowcell holds at most */
	__u32 number; /* its own */
	__be32 order[MAX_PATHS]; /* addresses of bouncing switches, or labels behind the block */
};

/* The racks, and their groups by number. The loader sets the sizes, never changes a group,
 * and takes out of use first what it deletes later: a packet sees the old paths
 * or the new ones. */
struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, MAX_PREFIXES);
	__type(key, struct prefix);
	__type(value, struct rack);
} racks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, MAX_PREFIXES);
	__type(key, __u32);
	__type(value, struct group);
} groups SEC(".maps");

struct traffic {
	__u64 packets;
	__u64 bytes;
	__u64 flowcells; /* drawn */
};

/* What went by each entry of the groups' orders. The loader sets the size and
 * puts them in; packets add none. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_HASH);
	__uint(max_entries, MAX_PATHS);
	__type(key, __be32);
	__type(value, struct traffic);
} bounces SEC(".maps");

/* mix is the finaliser of MurmurHash3. */
static __always_inline __u64 mix(__u64 x)
{
	x ^= x >> 33;
	x *= 0xff51afd7ed558ccd;
	x ^= x >> 33;
	x *= 0xc4ceb9fe1a85ec53;
	return x ^ x >> 33;
}

static __always_inline struct rack *rack_of(__be32 daddr)
{
	struct prefix key = { 32, daddr };

	return bpf_map_lookup_elem(&racks, &key);
}

#include "outer.h"
#include "choice.h"
#include "cutter.h"

/*
 * load_tcp reports whether a packet is unfragmented TCP, and reads the TCP header.
 * Without DF the ID is not the sender's to use (RFC 6864).
 */
static __always_inline int load_tcp(struct __sk_buff *skb, const struct ipv4 *ip, __u32 length, struct tcp *tcp)
{
	return ip->protocol == PROTO_TCP && ip->version_ihl == 0x45 && length >= 40 &&
	       (ip->frag_off & (DONT_FRAGMENT | FRAGMENT)) == DONT_FRAGMENT &&
	       !bpf_skb_load_bytes(skb, IP + sizeof(*ip), tcp, sizeof(*tcp));
}

/*
 * step says which entry of the group's order a packet takes, and numbers the packet
 * first if its flow is cut. Receivers restore the order only of unfragmented TCP. All
 * other packets keep to one path for each pair of hosts, whatever their ports, since
 * fragments have none.
 */
static __always_inline __u32 step(struct __sk_buff *skb, struct ipv4 *ip, __u32 length, __u32 segments,
				  const struct rack *rack, const struct group *g, int cuts)
{
	__u64 hash = mix((__u64)bpf_ntohl(ip->saddr) << 32 | bpf_ntohl(ip->daddr));
	struct tcp tcp;
	__u32 at = 0;

	if (load_tcp(skb, ip, length, &tcp)) {
		if (g->mode == RANDOM)
			return bpf_get_prandom_u32() % g->n;
		hash = mix(hash ^ bpf_ntohl(tcp.ports));
		if (cuts || g->mode == DRAWN)
			at = unit(ip, &tcp, hash, rack, g, length, segments, cuts);
		if (g->mode == DRAWN)
			return at % g->n;
		at = g->mode == BY_NUMBER ? bpf_ntohs(ip->id) >> (g->shift & 15) : 0;
	}
	return ((__u32)(hash >> 40) + at) % g->n;
}

/* headers is the length of the headers that each segment gets, IP's included. */
static __always_inline __u32 headers(struct __sk_buff *skb, const struct ipv4 *ip)
{
	__u32 l3 = header_length(ip);
	__u8 offset;

	if (ip->protocol != PROTO_TCP || bpf_skb_load_bytes(skb, IP + l3 + 12, &offset, sizeof(offset)))
		return l3 + 8; /* UDP */
	return l3 + (offset >> 4) * 4;
}

/* segments is what the device will make of the packet. Super-segments from
 * userspace come uncounted. */
static __always_inline __u32 segments(struct __sk_buff *skb, __u32 length, __u32 each)
{
	if (!skb->gso_size)
		return 1;
	if (skb->gso_segs)
		return skb->gso_segs;
	if (length <= each)
		return 1;
	return (length - each + skb->gso_size - 1) / skb->gso_size;
}

SEC("tc") int weft_spray(struct __sk_buff *skb)
{
	struct traffic *t;
	struct group *g;
	struct rack *rack;
	struct ipv4 ip;
	__u32 length, each, segs;
	__be32 path;
	__u8 *cuts;
	int verdict;

	count(SEEN, 1);
	if (skb->protocol != bpf_htons(ETH_P_IP) || bpf_skb_load_bytes(skb, IP, &ip, sizeof(ip)) || !is_ipv4(&ip))
		return TC_ACT_UNSPEC;
	cuts = bpf_map_lookup_elem(&own, &ip.saddr);
	if (ip.protocol == PROTO_IPIP || !cuts)
		return pass(PASSED);
	rack = rack_of(ip.daddr);
	g = rack ? bpf_map_lookup_elem(&groups, &rack->group) : NULL;
	if (!g)
		return pass(PASSED);
	if (rack->plain)
		return pass(PLAIN);
	if (!require && unattended())
		return pass(UNATTENDED);
	if (!g->n)
		return unable(NO_PATH);
	length = bpf_ntohs(ip.tot_len);
	if (header_length(&ip) < sizeof(ip) || length < header_length(&ip) || length > skb->len - IP)
		return unable(MALFORMED);
	each = headers(skb, &ip);
	if (too_long(skb, length, each, rack))
		return unable(TOO_LONG);
	segs = segments(skb, length, each);
	path = g->order[step(skb, &ip, length, segs, rack, g, *cuts) & (MAX_PATHS - 1)];
	verdict = by_labels(rack) ? label(skb, &ip, length, rack, path) : bounce(skb, &ip, length, path);
	if (verdict != TC_ACT_OK)
		return verdict;
	count(ENCAPSULATED, segs);
	t = bpf_map_lookup_elem(&bounces, &path);
	if (t) {
		t->packets += segs;
		t->bytes += length + overhead(rack) + (segs - 1) * (each + overhead(rack));
	}
	return TC_ACT_UNSPEC;
}

char _license[] SEC("license") = "GPL";
