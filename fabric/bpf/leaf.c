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
#include "dre.h"
#include "mark.h"

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
#define NO_RACK 0xfffffffe

#define HOP_LIMIT 64
#define MAX_WINDOW (1 << 22) /* bytes in flight that count as a proof */
#define SPEAKS 10000000000ULL /* ns behind its latest packet in which a host encapsulates by itself */
#define KEEP 1000000000ULL /* ns without a packet after which a flowcell has ended, and a flow proves nothing */

#define SAMPLE_PORT bpf_htons(9337)
#define SAMPLE_MAGIC bpf_htonl(0x77666c73)
#define SAMPLE_ACK 0x80
#define SAMPLE_QUEUE 0x7f
#define SAMPLE_VERSION 1
#define PATIENCE 10000000ULL /* ns that a round waits for its answers at least */
#define MAX_PATIENCE 1000000000ULL
#define PROBE 0x77660000 /* the mark of a packet's copy of which a sample is made; below it, which one */
#define ANSWERS 400 /* to a rack's samples in a span */
#define ALL_ANSWERS 4000 /* to all racks' by a CPU */
#define SPAN 10000000ULL

/* The order of fabric.LeafStats, behind that of fabric.BalanceStats. */
enum {
	CHOSEN, PLAIN, BEGUN, EVICTED,
	GUIDED, TOO_LONG, REFUSED, MARKED, HEARD, UNPROVEN, SAMPLED, LEARNED, UNASKED, ANSWERED, UNANSWERED, SHARED, SPOOFED, LATE,
	NUM_COUNTERS
};

#include "count.h"

/* balance.Kind */
enum { CONGA = 9, LUOPAN = 10 };

const volatile __u32 rule, samples, flowcell;
const volatile __u64 gap, age, expiry, seed;
const volatile __u64 least_expiry = 40000; /* where there is no expiry */

/* Instead of the monotonic clock, if it is not 0. Tests set it. */
volatile __u64 clock;

static __always_inline __u64 time_now(void)
{
	__u64 test = clock;

	return test ? test : bpf_ktime_get_ns();
}

#include "leaftables.h"
#include "leaflease.h"
#include "leafhosts.h"
#include "leafconga.h"
#include "leafluopan.h"

/* path_of returns the path of a packet's flowlet or flowcell. A flow whose place another one
 * has takes the path there, if it leads to its rack (CONGA §3.4). Two CPUs that write a place
 * at the same time may begin one more. */
static __always_inline __u32 path_of(const struct rack *r, __u64 flow, __u32 length, __u64 now)
{
	__u32 place = (__u32)flow % FLOWS, who = flow >> 32, last = NO_PATH, path;
	struct flow *f = bpf_map_lookup_elem(&flows, &place);
	int lives, leads, own;

	if (!f)
		return NO_PATH;
	lives = f->last && now - f->last <= (rule == CONGA ? gap : KEEP);
	leads = f->rack == r->number && f->last && f->path < MAX_PATHS && r->bounce[f->path & (MAX_PATHS - 1)];
	own = f->who == who && f->rack == r->number;
	path = f->path;
	if (!leads || !lives || (rule == LUOPAN && f->bytes + length > flowcell)) {
		count(BEGUN, 1);
		if (lives && !leads && !own)
			count(EVICTED, 1);
		if (leads && own)
			last = f->path;
		path = rule == CONGA ? least_busy(r->number, last, now) : least_sampled(r->number, now);
		if (!own)
			f->seen = 0;
		f->who = who;
		f->rack = r->number;
		f->path = path;
		f->bytes = 0;
	} else if (!own) {
		count(SHARED, 1);
	}
	f->bytes += length;
	f->last = now;
	return path;
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
		return left(skb, REFUSED);
	if (bpf_skb_store_bytes(skb, IP, &h, sizeof(h), 0))
		return drop(REFUSED); /* the room cannot be given back */
	return pass(CHOSEN);
}

static __always_inline int from_fabric(struct __sk_buff *skb, struct ipv4 *ip)
{
	__u64 now = time_now();
	struct sample s;
	__u32 number;
	int proven;

	if (rack_of(ip->daddr) != OWN)
		return plain(skb);
	number = rack_of(ip->saddr);
	if (number >= MAX_RACKS)
		return plain(skb);
	if (rule == CONGA && ip->protocol == PROTO_TCP && !(ip->frag_off & FRAGMENT)) {
		proven = acknowledged(skb, number, ip, now);
		if (!marked(ip))
			return plain(skb);
		if (proven)
			hear(number, bpf_ntohs(ip->id), now);
		else
			count(UNPROVEN, 1);
		if (!speaks(ip->daddr, now))
			unmark(skb, ip);
		return plain(skb);
	}
	if (rule != LUOPAN || ip->protocol != PROTO_UDP || ip->version_ihl != 0x45 || ip->tot_len != bpf_htons(sizeof(s)) ||
	    ip->frag_off & FRAGMENT || bpf_skb_load_bytes(skb, IP, &s, sizeof(s)) || s.source != SAMPLE_PORT ||
	    s.dest != SAMPLE_PORT || s.magic != SAMPLE_MAGIC || s.version != SAMPLE_VERSION)
		return plain(skb);
	if (!(s.word & bpf_htonl(SAMPLE_ACK)))
		return answer(skb, number, &s, now);
	if (learn(number, &s, now))
		return drop(LEARNED);
	if (speaks(ip->daddr, now))
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
	__u64 flow;

	/* Only switches, and hosts that encapsulate by themselves, write marks. */
	if (rule == CONGA && marked(ip) && unmark(skb, ip))
		return plain(skb);
	if (ip->protocol == PROTO_IPIP) {
		if (spoofs(skb, ip, port))
			return drop(SPOOFED);
		bpf_map_update_elem(&speakers, &ip->saddr, &now, BPF_ANY);
		return plain(skb);
	}
	if (rack_of(ip->saddr) != OWN)
		return plain(skb);
	number = rack_of(ip->daddr);
	if (number >= MAX_RACKS || ip->ttl <= 1)
		return plain(skb);
	if (late(now)) {
		bpf_set_hash_invalid(skb);
		return pass(LATE);
	}
	r = bpf_map_lookup_elem(&racks, &number);
	if (!r || !r->n)
		return plain(skb);
	/* A super-segment of more than 64 KB has 0 in its header (BIG TCP). */
	length = !ip->tot_len && ip->protocol == PROTO_TCP && gso ? skb->len - IP : bpf_ntohs(ip->tot_len);
	if (each(skb, ip, length, gso) + sizeof(*ip) > port->room)
		return left(skb, TOO_LONG);
	if (length + sizeof(*ip) > 0xffff && !(gso && ip->protocol == PROTO_TCP))
		return left(skb, TOO_LONG);
	if (rule == LUOPAN)
		ask(skb, r, ip->saddr, ip->daddr, now);
	flow = flow_of(skb, ip, 0);
	path = path_of(r, flow, length, now);
	if (path >= MAX_PATHS || !r->bounce[path & (MAX_PATHS - 1)])
		return plain(skb);
	if (rule == CONGA) {
		if (ip->protocol == PROTO_TCP && !(ip->frag_off & FRAGMENT))
			departs(skb, number, flow, header_length(ip), length);
		tag = r->tag[path & (MAX_PATHS - 1)];
		asm volatile("" : "+r"(tag));
		sent(r->uplink[tag & (TAGS - 1)], length, now);
		if (ip->protocol == PROTO_TCP && ip->version_ihl == 0x45 && ip->frag_off == DONT_FRAGMENT && !(ip->tos >> 2) &&
		    (!gso || length <= MAX_SEGMENTS * gso)) {
			mark(ip, MARK_DSCP, bpf_htons(mark_for(number, tag, now)));
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
		return plain(skb);
	if (rule == LUOPAN && (skb->mark & 0xffff0000) == PROBE && port->to_hosts)
		return probe(skb);
	/* What has a mark, a VLAN's tag, or another device's address is not for this port's
	 * routes. */
	if (skb->protocol != bpf_htons(ETH_P_IP) || skb->mark || skb->vlan_present || skb->pkt_type != PACKET_HOST ||
	    bpf_skb_load_bytes(skb, IP, &ip, sizeof(ip)) || !is_ipv4(&ip) || header_length(&ip) < sizeof(ip))
		return plain(skb);
	return port->to_hosts ? from_host(skb, &ip, port) : from_fabric(skb, &ip);
}

char _license[] SEC("license") = "GPL";
