// Spraying at a host's uplink: puts an outer header that names the path (outer.h)
// before the packets that this host sends into the fabric, or forwards there for what is behind it.
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
// the path of each flow's flowcell, or flowlet (flowlet.h). A flow that a scheduler has pinned
// to a path takes that one (elephant.h), and is numbered all the same. In IPv6 the flow label has the number; single packets
// have none there, so the program counts those of each flow. It keeps no other state.
// Super-segments stay whole.

#include "packet.h"
#include "ipv6.h"

#define MAX_PATHS 1024 /* hostprog.maxPaths; a power of two */
#define MAX_PREFIXES 65536

/* The order of readStats in stats_linux.go. */
enum {
	ENCAPSULATED, PASSED, REFUSED, NO_PATH, TOO_LONG, MALFORMED, FLOWS, FLOWCELLS, CHOSEN,
	SEEN, PLAIN, UNATTENDED, BROKEN, LONG, LONG_BYTES, LONG_AGAIN, DATAGRAMS, DATAGRAM_FLOWS,
	MARKED, UNPROVEN, PEERS, HANDED, RETURNED, FORWARDED, FORWARDED_LONG, COUNTED, PINNED, UNPINNED,
	NUM_COUNTERS
};

#include "count.h"
#include "elephant.h"
#include "heart.h"

/* Whether what cannot be encapsulated is dropped. The loader sets it. */
volatile const __u8 require = 0;

static __always_inline int unable(__u32 why)
{
	return require ? drop(why) : pass(why);
}

/* Whether the host has several uplinks, at each of which this program runs. The loader sets it. */
volatile const __u8 several = 0;

/* How a TCP packet's path is chosen; the order of hostprog.sprayMode. */
enum { BY_NUMBER, BY_HASH, RANDOM, DRAWN, FLOWLETS, INFORMED };

struct address6 {
	__be32 word[4];
};

union sids {
	struct address6 address;
	__be64 half[2];
};

/* This host's own addresses: the outer source is the inner one. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16);
	__type(key, __be32);
	__type(value, __u8); /* CUTS: its TCP is to be cut into flowcells; else its sender numbers */
} own SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16);
	__type(key, struct address6);
	__type(value, __u8);
} own6 SEC(".maps");

#define CUTS 1

#include "behind.h"
#include "forwarded.h"

struct prefix {
	__u32 length;
	__be32 addr;
};

struct prefix6 {
	__u32 length;
	struct address6 addr;
};

/* What the outer header is; the order of hostprog.outerKind. IPV6 is to an address that stands
 * for the path: a bouncing switch's own, or a SID at which it takes the header off. */
enum { IPV4, LABELS, IPV6 };

/* The outer source of IPv4 packets with IPV6. The loader sets it. */
volatile const __be32 source6[4] = {};

/* A way to a rack. */
struct rack {
	__u32 group; /* its paths */
	__u32 number; /* its own; of IPv6 that of no rack in choices and active */
	union sids sids; /* with LABELS, what all paths share, 0 where they differ; else 0 */
	__u32 plain; /* 1: packets to it leave as they are */
	__u32 outer;
	__u32 longest; /* forwarded packet, bytes without the outer header; 0: as the uplink has it */
	__u32 unused;
};

/* The paths to some racks. */
struct group {
	__u32 n; /* how many steps the order has; 0: cut off */
	__u32 mode;
	__u32 shift; /* from an IPv4 ID to a step of the order */
	__u32 cell_bytes; /* TCP payload that a flowcell holds at most */
	__u32 number; /* its own */
	__u32 gap; /* ticks: a longer pause ends a flowlet */
	__u32 ends[16]; /* behind the steps of each tag; only with INFORMED */
	__be32 order[MAX_PATHS]; /* addresses of bouncing switches, labels behind the block, or
				  * with IPV6 or several uplinks numbers of entries of bounces */
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
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, MAX_PREFIXES);
	__type(key, struct prefix6);
	__type(value, struct rack);
} racks6 SEC(".maps");

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
	struct address6 to; /* with IPV6, where the outer header leads; with several uplinks
			     * also that of IPV4, in the first word; else 0 */
	__u32 device; /* with several uplinks, the one that the path begins with */
	struct bpf_redir_neigh next; /* the switch behind it; family 0: the kernel finds one */
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

/* A packet to encapsulate, of either family. */
struct inner {
	union {
		struct ipv4 v4;
		struct ipv6 v6;
	};
	__u8 six;
	__u8 protocol;
	__u8 numbered; /* its header has room for a number */
	__u16 number; /* there */
	__u8 tagged; /* data by CONGA: the tag of its path, and 1 */
	__u32 header; /* bytes of the IP header */
	__u32 length; /* bytes of all */
	__u64 pair; /* hash of the two addresses */
};

static __always_inline struct rack *rack_of(const struct inner *in)
{
	struct prefix key = { 32, in->v4.daddr };
	struct prefix6 key6 = { 128 };

	if (!in->six)
		return bpf_map_lookup_elem(&racks, &key);
	__builtin_memcpy(&key6.addr, in->v6.daddr, sizeof(key6.addr));
	return bpf_map_lookup_elem(&racks6, &key6);
}

#include "outer.h"
#include "choice.h"
#include "clock.h"
#include "cutter.h"
#include "conga.h"
#include "heed.h"
#include "flowlet.h"
#include "datagrams.h"
#include "forwards.h"

/* load reads the header of an IP packet; false if it is none. */
static __always_inline int load(struct __sk_buff *skb, struct inner *in)
{
	__builtin_memset(in, 0, sizeof(*in));
	if (skb->protocol == bpf_htons(ETH_P_IP))
		return !bpf_skb_load_bytes(skb, IP, &in->v4, sizeof(in->v4)) && is_ipv4(&in->v4);
	in->six = 1;
	return skb->protocol == bpf_htons(ETH_P_IPV6) && !bpf_skb_load_bytes(skb, IP, &in->v6, sizeof(in->v6)) &&
	       is_ipv6(&in->v6);
}

/* own_of looks the packet's source up among the host's own addresses, and what is behind it. */
static __always_inline __u8 *own_of(const struct inner *in)
{
	struct address6 key;
	__u8 *own_value;

	if (!in->six) {
		own_value = bpf_map_lookup_elem(&own, &in->v4.saddr);
		return own_value ? own_value : behind_at4(in->v4.saddr);
	}
	__builtin_memcpy(&key, in->v6.saddr, sizeof(key));
	own_value = bpf_map_lookup_elem(&own6, &key);
	return own_value ? own_value : behind_at(in->v6.saddr);
}

/* pair_of hashes two IPv6 addresses. */
static __always_inline __u64 pair_of(const struct ipv6 *ip)
{
	__u64 hash = 0;

	for (int i = 0; i < 4; i += 2)
		hash = mix(hash ^ ((__u64)bpf_ntohl(ip->saddr[i]) << 32 | bpf_ntohl(ip->saddr[i + 1])));
	for (int i = 0; i < 4; i += 2)
		hash = mix(hash ^ ((__u64)bpf_ntohl(ip->daddr[i]) << 32 | bpf_ntohl(ip->daddr[i + 1])));
	return hash;
}

/* look reads out of the header what both families have. Without DF the ID is not the
 * sender's to use (RFC 6864); the label always is. Of IPv6, super-segments above 64 KB are
 * malformed here: they have a header more (RFC 2675). */
static __always_inline void look(struct __sk_buff *skb, struct inner *in)
{
	if (in->six) {
		in->protocol = in->v6.next;
		in->numbered = 1;
		in->number = bpf_ntohl(in->v6.class);
		in->header = sizeof(in->v6);
		in->length = sizeof(in->v6) + bpf_ntohs(in->v6.payload);
		in->pair = pair_of(&in->v6);
		return;
	}
	in->protocol = in->v4.protocol;
	in->numbered = in->v4.version_ihl == 0x45 && (in->v4.frag_off & (DONT_FRAGMENT | FRAGMENT)) == DONT_FRAGMENT;
	in->number = bpf_ntohs(in->v4.id);
	in->header = header_length(&in->v4);
	in->length = total_length(skb, &in->v4);
	in->pair = mix((__u64)bpf_ntohl(in->v4.saddr) << 32 | bpf_ntohl(in->v4.daddr));
}

/* load_tcp reports whether a packet is TCP whose number is the sender's, and reads the TCP
 * header. */
static __always_inline int load_tcp(struct __sk_buff *skb, const struct inner *in, struct tcp *tcp)
{
	return in->protocol == PROTO_TCP && in->numbered && in->length >= in->header + 20 &&
	       !bpf_skb_load_bytes(skb, IP + (in->six ? sizeof(struct ipv6) : sizeof(struct ipv4)), tcp, sizeof(*tcp));
}

/*
 * step says which entry of the group's order a packet takes, and numbers the packet
 * first if its flow is cut. Receivers restore the order only of unfragmented TCP, and of
 * the datagrams of datagrams.h. All other packets keep to one path for each pair of hosts,
 * whatever their ports, since fragments have none.
 */
static __always_inline __u32 step(struct __sk_buff *skb, struct inner *in, __u32 segments, const struct rack *rack,
				  const struct group *g, int cuts, int informed)
{
	__u64 hash = in->pair;
	struct tcp tcp;
	__be32 ports;
	__u32 at = 0;

	if (load_tcp(skb, in, &tcp)) {
		if (informed)
			return informed_flowlet(in, &tcp, g, segments) % g->n;
		if (g->mode == RANDOM)
			return bpf_get_prandom_u32() % g->n;
		hash = mix(hash ^ bpf_ntohl(tcp.ports));
		if (g->mode == FLOWLETS)
			return flowlet(in, &tcp, rack, g) % g->n;
		if (cuts || g->mode == DRAWN)
			at = unit(in, &tcp, hash, rack, g, segments, cuts);
		if (g->mode == DRAWN)
			return at % g->n;
		if (g->mode == BY_NUMBER && in->six && !g->shift)
			at = turn(in, &tcp, g);
		else
			at = g->mode == BY_NUMBER ? cuts ? at : in->number >> (g->shift & 15) : 0;
	} else if (is_datagram(skb, in, &ports)) {
		hash = mix(hash ^ bpf_ntohl(ports));
		at = datagram(in, ports, g, segments);
	}
	return ((__u32)(hash >> 40) + at) % g->n;
}

/* headers is the length of the headers that each segment gets, IP's included. */
static __always_inline __u32 headers(struct __sk_buff *skb, const struct inner *in)
{
	__u8 offset;

	if (in->protocol != PROTO_TCP || bpf_skb_load_bytes(skb, IP + in->header + 12, &offset, sizeof(offset)))
		return in->header + 8; /* UDP */
	return in->header + (offset >> 4) * 4;
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

static __always_inline int is_tunnel(const struct inner *in)
{
	return in->protocol == PROTO_IPIP || (in->six && in->protocol == PROTO_IPV6);
}

/* What tc_index says of a packet that the program at another uplink has done with. */
#define HANDED_OVER 0x5740

/* The device over the uplink that cuts super-segments and sends their packets by the uplink
 * again, so that each of them gets a path; 0: none. The loader writes it at any time. */
volatile __u32 cutter = 0;

/* What tc_index says of what has been there, so that nothing goes round twice. */
#define CUT 0x5741

/* cutting returns the device that is to cut a packet; 0: the packet goes on as it is. A device
 * that has been removed cuts nothing: bpf_redirect would lose the packet without a word. For a
 * super-segment bpf_check_mtu only looks whether the device exists. */
static __always_inline __u32 cutting(struct __sk_buff *skb, const struct inner *in)
{
	__u32 device = cutter, mtu = 0;

	if (!device || !skb->gso_size || in->protocol != PROTO_TCP || bpf_check_mtu(skb, device, &mtu, 0, 0) < 0)
		return 0;
	return device;
}

/* leave sends a packet by the uplink of its path. The kernel's route may have led to another. */
static __always_inline int leave(struct __sk_buff *skb, struct traffic *t)
{
	if (!several || !t->device || t->device == skb->ifindex)
		return TC_ACT_UNSPEC;
	skb->tc_index = HANDED_OVER;
	if (!t->next.nh_family)
		return bpf_redirect_neigh(t->device, NULL, 0, 0);
	return bpf_redirect_neigh(t->device, &t->next, sizeof(t->next), 0);
}

/* path_of returns where a packet goes that its step of the order sends by path: to its flow's
 * pin, as long as that is among the live paths. It counts the flow. Fragments have none. It is a
 * function of its own for the same reason as draw. */
static __noinline __be32 path_of(struct __sk_buff *skb, const struct inner *in, __u32 group, __be32 path, __u64 bytes)
{
	struct five_tuple key = { .protocol = in->protocol };
	struct pin *p;

	if ((in->protocol != PROTO_TCP && in->protocol != PROTO_UDP) || (!in->six && in->v4.frag_off & FRAGMENT) ||
	    bpf_skb_load_bytes(skb, IP + in->header, &key.ports, sizeof(key.ports)))
		return path;
	if (in->six) {
		__builtin_memcpy(key.saddr, in->v6.saddr, sizeof(key.saddr));
		__builtin_memcpy(key.daddr, in->v6.daddr, sizeof(key.daddr));
	} else {
		map_ipv4(key.saddr, in->v4.saddr);
		map_ipv4(key.daddr, in->v4.daddr);
	}
	if (elephants == PINS_AND_COUNTS)
		count_flow(&key, bytes);
	p = pin_of(&key);
	if (!p)
		return path;
	if (p->among != group) {
		count(UNPINNED, 1);
		return path;
	}
	count(PINNED, 1);
	return p->way;
}

/* spray encapsulates a packet. informed is constant: the mode of all groups is INFORMED, or that of none. */
static __always_inline int spray(struct __sk_buff *skb, int informed)
{
	__u32 each, segs, bytes;
	struct traffic *t;
	struct group *g;
	struct rack *rack;
	struct inner in;
	__be32 path;
	__u8 *cuts;
	int verdict, cut = skb->tc_index == CUT, forwarded_here;
	__u32 device;

	if (cut) {
		skb->tc_index = 0;
		count(RETURNED, skb->gso_segs ? skb->gso_segs : 1);
	}
	if (several && skb->tc_index == HANDED_OVER) {
		skb->tc_index = 0;
		return TC_ACT_UNSPEC;
	}
	if (!cut)
		count(SEEN, 1);
	if (!load(skb, &in))
		return TC_ACT_UNSPEC;
	cuts = own_of(&in);
	if (!cuts)
		return pass(PASSED);
	look(skb, &in);
	rack = is_tunnel(&in) ? NULL : rack_of(&in);
	g = rack ? bpf_map_lookup_elem(&groups, &rack->group) : NULL;
	if (!g)
		return pass(PASSED);
	/* What has no socket here is forwarded. What was cut has lost its socket. */
	forwarded_here = forwards && !cut && (*cuts & BEHIND || !skb->sk);
	if (forwarded_here)
		note_forwarded(skb, &in, rack);
	if (rack->plain)
		return pass(PLAIN);
	if (!require && unattended())
		return pass(UNATTENDED);
	if (!g->n)
		return unable(NO_PATH);
	if (in.header < sizeof(struct ipv4) || in.length < in.header || in.length > skb->len - IP)
		return unable(MALFORMED);
	if (in.six && in.length == in.header && skb->len - IP > in.length)
		return unable(MALFORMED);
	each = headers(skb, &in);
	if (forwarded_here && rack->longest && (skb->gso_size ? each + skb->gso_size : in.length) > rack->longest)
		return unable(FORWARDED_LONG);
	if (too_long(skb, &in, each, rack))
		return unable(forwarded_here ? FORWARDED_LONG : TOO_LONG);
	segs = segments(skb, in.length, each);
	device = cut ? 0 : cutting(skb, &in);
	if (device) {
		skb->tc_index = CUT;
		count(HANDED, segs);
		return bpf_redirect(device, 0);
	}
	path = g->order[step(skb, &in, segs, rack, g, *cuts & CUTS, informed) & (MAX_PATHS - 1)];
	bytes = in.length + overhead(rack) + (segs - 1) * (each + overhead(rack));
	if (elephants && !informed)
		path = path_of(skb, &in, rack->group, path, bytes + segs * IP);
	t = bpf_map_lookup_elem(&bounces, &path);
	if (!t)
		return unable(NO_PATH); /* the loader has put in all */
	if (several)
		path = t->to.word[0];
	verdict = encapsulate(skb, &in, rack, path, &t->to);
	if (verdict != TC_ACT_OK)
		return verdict;
	count(ENCAPSULATED, segs);
	t->packets += segs;
	t->bytes += bytes;
	if (informed && in.tagged)
		sent(in.tagged - 1, bytes);
	return leave(skb, t);
}

SEC("tc") int weft_spray(struct __sk_buff *skb)
{
	return spray(skb, 0);
}

#include "arrives.h"

/* The same under CONGA. The loader loads one of the two, by the name weft_spray. So under other policies
 * the verifier does not see what only CONGA calls. */
SEC("tc") int weft_inform(struct __sk_buff *skb)
{
	return spray(skb, 1);
}

char _license[] SEC("license") = "GPL";
