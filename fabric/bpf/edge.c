/*
 * Where labels begin and end (fabric/labels.go): at tc ingress of all ports
 * of a switch that forwards by them.
 *
 * A host may send only its own packets with labels: labels pass every routing table
 * and filter, so a host that could write any could send in anybody's name.
 *
 * Before the kernel takes the outer header off (End.DX4), the program carries a
 * congestion mark inside, which the kernel does not do. It also checks the inner
 * header, which End.DX4 forwards unseen.
 */

#include "packet.h"
#include "inner.h"
#include "ipv6.h"

#define ETH_VLAN bpf_htons(0x8100)
#define ETH_QINQ bpf_htons(0x88a8)
#define ETH_MPLS bpf_htons(0x8847)
#define ETH_MPLS_MULTICAST bpf_htons(0x8848)

#define MAX_HOPS 64
#define MAX_LABELS 16 /* of MPLS; no path has as many */

/* encap.SIDBlock and encap.SIDDecap. */
#define SID_BLOCK bpf_htonl(0x5f000000)
#define SID_BLOCK_MASK bpf_htonl(0xffff0000)
#define SID_DECAP bpf_htonl(0x5f00fe00)

/* The order of fabric.EdgeCounters. */
enum { DECAPSULATED, FORGED, NESTED, ECN, MALFORMED, NUM_COUNTERS };

#include "count.h"

#define INNER (IP + sizeof(struct ipv6))

struct host {
	__be32 own;
	__be32 embedded;
};

/* By interface: ports to hosts. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, __u32);
	__type(value, struct host);
} hosts SEC(".maps");

static __always_inline int is_from(const struct host *h, __be32 addr)
{
	return addr == h->own || addr == h->embedded;
}

static __always_inline int from_fabric(const struct ipv6 *ip)
{
	return ip->saddr[0] == ADDR6_0 && ip->saddr[1] == ADDR6_1 && !ip->saddr[2];
}

/* mpls_gate finds the IPv4 packet behind a host's label stack. */
static __always_inline int mpls_gate(struct __sk_buff *skb, const struct host *h)
{
	__u32 at = IP;
	__be32 entry;
	struct ipv4 ip;

	for (int i = 0; i < MAX_LABELS; i++) {
		if (bpf_skb_load_bytes(skb, at, &entry, sizeof(entry)))
			return drop(MALFORMED);
		at += sizeof(entry);
		if ((bpf_ntohl(entry) & 0xff) > MAX_HOPS)
			return drop(FORGED);
		if (bpf_ntohl(entry) & 0x100) { /* bottom of stack */
			if (bpf_skb_load_bytes(skb, at, &ip, sizeof(ip)) || !is_ipv4(&ip) || header_length(&ip) < sizeof(ip))
				return drop(MALFORMED);
			return is_from(h, ip.saddr) ? TC_ACT_UNSPEC : drop(FORGED);
		}
	}
	return drop(MALFORMED);
}

SEC("tc") int weft_edge(struct __sk_buff *skb)
{
	__u32 port = skb->ifindex;
	__be16 protocol = skb->protocol;
	struct host *h = bpf_map_lookup_elem(&hosts, &port);

	if (h) {
		/* A tag of VLAN 0 is off already, a second one the kernel would
		 * still take off behind us. */
		if (protocol == ETH_VLAN || protocol == ETH_QINQ || protocol == ETH_MPLS_MULTICAST)
			return drop(FORGED);
		if (protocol == ETH_MPLS)
			return mpls_gate(skb, h);
	}
	if (protocol != bpf_htons(ETH_P_IPV6) || reach(skb, INNER))
		return TC_ACT_UNSPEC;
	struct ipv6 *outer = (void *)(long)skb->data + IP;
	if ((void *)(outer + 1) > (void *)(long)skb->data_end)
		return TC_ACT_UNSPEC;
	if ((outer->daddr[0] & SID_BLOCK_MASK) != SID_BLOCK)
		return TC_ACT_UNSPEC;
	int here = outer->daddr[0] == SID_DECAP && !outer->daddr[1] && !outer->daddr[2] && !outer->daddr[3];
	if (!h && !here)
		return TC_ACT_UNSPEC;

	/* A routing header could hide where the packet goes next. */
	if (outer->next != PROTO_IPIP)
		return drop(h ? FORGED : MALFORMED);
	if (reach(skb, INNER + sizeof(struct ipv4)))
		return drop(MALFORMED);
	outer = (void *)(long)skb->data + IP;
	struct ipv4 *inner = (void *)(long)skb->data + INNER;
	if ((void *)(inner + 1) > (void *)(long)skb->data_end)
		return drop(MALFORMED);
	if (!is_ipv4(inner) || header_length(inner) < sizeof(*inner) ||
	    bpf_ntohs(inner->tot_len) < header_length(inner) ||
	    bpf_ntohs(inner->tot_len) > bpf_ntohs(outer->payload))
		return drop(MALFORMED);
	/* Whoever encapsulates is the inner packet's sender (CVE-2025-23018). */
	if (!from_fabric(outer) || outer->saddr[3] != inner->saddr)
		return drop(FORGED);
	if (h && (!is_from(h, inner->saddr) || outer->hops > MAX_HOPS))
		return drop(FORGED);
	if (!here)
		return TC_ACT_UNSPEC;
	if (inner->protocol == PROTO_IPIP)
		return drop(NESTED);
	if (carry_ecn(skb, INNER, inner->version_ihl, traffic_class(outer), inner->tos))
		return drop(ECN);
	count(DECAPSULATED, skb->gso_segs ? skb->gso_segs : 1);
	return TC_ACT_UNSPEC;
}

char _license[] SEC("license") = "GPL";
