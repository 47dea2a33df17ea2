// Decapsulation at a bouncing switch: removes the outer header of IP-in-IP
// packets (RFC 2003) that are addressed to this node, and leaves the inner
// packet to the kernel's routing table.
//
// Runs at tc ingress of Ethernet ports. There, and not in XDP, it keeps
// 64 KB GSO segments whole.

#include "packet.h"
#include "inner.h"

#ifndef BPF_F_ADJ_ROOM_DECAP_L3_IPV4
#define BPF_F_ADJ_ROOM_DECAP_L3_IPV4 (1ULL << 7) /* Linux 6.3 */
#endif

/* The order of fabric.Counters. */
enum { DECAPSULATED, SPOOFED, NESTED, ECN, MALFORMED, NUM_COUNTERS };

#include "count.h"

#define OUTER IP
#define INNER (OUTER + sizeof(struct ipv4))

/* The bits of the mark that are ours: virtualMarkMask of fabric/virtual.go. */
#define MARK_MASK 0x7ff

/* By bouncing address: the mark for what was inside, 0 to leave it as it is. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, __be32);
	__type(value, __u32);
} bouncing SEC(".maps");

static __always_inline int bad_checksum(struct ipv4 *ip)
{
	return fold(bpf_csum_diff(0, 0, (__be32 *)ip, sizeof(*ip), 0)) != 0xffff;
}

SEC("tc") int weft_decap(struct __sk_buff *skb)
{
	struct ethhdr *eth;
	struct ipv4 *outer, *inner;
	void *end;

	if (reach(skb, INNER))
		return TC_ACT_UNSPEC;
	eth = (void *)(long)skb->data;
	outer = (void *)(long)skb->data + OUTER;
	end = (void *)(long)skb->data_end;
	if ((void *)(outer + 1) > end)
		return TC_ACT_UNSPEC;
	if (eth->h_proto != bpf_htons(ETH_P_IP) || outer->version_ihl >> 4 != 4 || outer->protocol != PROTO_IPIP)
		return TC_ACT_UNSPEC;
	__be32 daddr = outer->daddr; /* map keys must be on the stack before Linux 4.18 */
	__u32 *value = bpf_map_lookup_elem(&bouncing, &daddr);
	if (!value)
		return TC_ACT_UNSPEC;
	__u32 mark = *value;

	/* Options and fragments: nobody who sprays packets sends them. The
	 * kernel has not checked the header yet at this point. */
	if (outer->version_ihl != 0x45 || outer->frag_off & FRAGMENT || bad_checksum(outer))
		return drop(MALFORMED);
	if (reach(skb, INNER + sizeof(struct ipv4)))
		return drop(MALFORMED);
	outer = (void *)(long)skb->data + OUTER;
	inner = (void *)(long)skb->data + INNER;
	end = (void *)(long)skb->data_end;
	if ((void *)(inner + 1) > end)
		return drop(MALFORMED);
	if (inner->version_ihl >> 4 != 4 || (inner->version_ihl & 15) < 5 ||
	    bpf_ntohs(inner->tot_len) + sizeof(*outer) > bpf_ntohs(outer->tot_len))
		return drop(MALFORMED);
	if (inner->protocol == PROTO_IPIP)
		return drop(NESTED);
	/*
	 * Whoever encapsulates is the inner packet's sender. A switch that took
	 * any inner source would carry forged packets past every filter in front
	 * of it (VU#199397, CVE-2025-23018).
	 */
	if (inner->saddr != outer->saddr)
		return drop(SPOOFED);
	if (carry_ecn(skb, INNER, inner->version_ihl, outer->tos, inner->tos))
		return drop(ECN);
	if (bpf_skb_adjust_room(skb, -(int)sizeof(struct ipv4), BPF_ADJ_ROOM_MAC,
				BPF_F_ADJ_ROOM_FIXED_GSO | BPF_F_ADJ_ROOM_DECAP_L3_IPV4))
		return drop(MALFORMED);
	if (mark) /* routing is by the virtual spine that the packet came to */
		skb->mark = (skb->mark & ~MARK_MASK) | mark;
	count(DECAPSULATED, skb->gso_segs ? skb->gso_segs : 1);
	return TC_ACT_UNSPEC;
}

char _license[] SEC("license") = "GPL";
