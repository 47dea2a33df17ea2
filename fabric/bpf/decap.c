// Decapsulation at a bouncing switch: removes the outer header of IP-in-IP
// packets (RFC 2003; of IPv6, RFC 2473) that are addressed to this node, and leaves the
// inner packet, which is of the same family, to the kernel's routing table.
//
// Runs at tc ingress of Ethernet ports. There, and not in XDP, it keeps
// 64 KB GSO segments whole.

#include "packet.h"
#include "inner.h"
#include "ipv6.h"

#ifndef BPF_F_ADJ_ROOM_DECAP_L3_IPV4
#define BPF_F_ADJ_ROOM_DECAP_L3_IPV4 (1ULL << 7) /* Linux 6.3 */
#define BPF_F_ADJ_ROOM_DECAP_L3_IPV6 (1ULL << 8)
#endif

/* The order of fabric.Counters. */
enum { DECAPSULATED, SPOOFED, NESTED, ECN, MALFORMED, NUM_COUNTERS };

#include "count.h"

#define OUTER IP
#define INNER (OUTER + sizeof(struct ipv4))

/* The bits of the mark that are ours: markMask of fabric/virtual.go. */
#define MARK_MASK 0x7ff

/* An address of either family; of IPv4 it is mapped (RFC 4291 §2.5.5.2). */
struct address {
	__be32 word[4];
};

/* By bouncing address: the mark for what was inside, 0 to leave it as it is. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, struct address);
	__type(value, __u32);
} bouncing SEC(".maps");

static __always_inline int bad_checksum(struct ipv4 *ip)
{
	return fold(bpf_csum_diff(0, 0, (__be32 *)ip, sizeof(*ip), 0)) != 0xffff;
}

/* no_length reports a super-segment of which the outer header, and mostly the inner one, too,
 * cannot say how long it is (BIG TCP). */
static __always_inline int no_length(struct __sk_buff *skb, const struct ipv4 *outer, const struct ipv4 *inner)
{
	return !outer->tot_len && inner->protocol == PROTO_TCP && skb->gso_size &&
	       skb->len > 0xffff + IP;
}

/*
 * Whoever encapsulates is the inner packet's sender. A switch that took any inner source
 * would carry forged packets past every filter in front of it (VU#199397, CVE-2025-23018).
 */
static __always_inline int decap4(struct __sk_buff *skb)
{
	struct ipv4 *outer = (void *)(long)skb->data + OUTER, *inner;
	void *end = (void *)(long)skb->data_end;

	if ((void *)(outer + 1) > end)
		return TC_ACT_UNSPEC;
	if (outer->version_ihl >> 4 != 4 || outer->protocol != PROTO_IPIP)
		return TC_ACT_UNSPEC;
	struct address to = { { 0, 0, bpf_htonl(0xffff), outer->daddr } };
	__u32 *value = bpf_map_lookup_elem(&bouncing, &to);
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
	    (!no_length(skb, outer, inner) && bpf_ntohs(inner->tot_len) + sizeof(*outer) > bpf_ntohs(outer->tot_len)))
		return drop(MALFORMED);
	if (inner->protocol == PROTO_IPIP)
		return drop(NESTED);
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

/* set_class writes a traffic class. No checksum covers it. */
static __always_inline int set_class(struct __sk_buff *skb, __u32 ip, __be32 class, __u8 to)
{
	class = (class & bpf_htonl(0xf00fffff)) | bpf_htonl((__u32)to << 20);
	return bpf_skb_store_bytes(skb, ip, &class, sizeof(class), 0);
}

static __always_inline int decap6(struct __sk_buff *skb)
{
	struct ipv6 outer, inner;
	struct address to;
	int ecn;

	if (bpf_skb_load_bytes(skb, OUTER, &outer, sizeof(outer)) || outer.next != PROTO_IPV6)
		return TC_ACT_UNSPEC;
	__builtin_memcpy(&to, outer.daddr, sizeof(to));
	if (!bpf_map_lookup_elem(&bouncing, &to))
		return TC_ACT_UNSPEC;
	if (!is_ipv6(&outer) || bpf_skb_load_bytes(skb, OUTER + sizeof(outer), &inner, sizeof(inner)) ||
	    !is_ipv6(&inner) || bpf_ntohs(inner.payload) + sizeof(inner) > bpf_ntohs(outer.payload))
		return drop(MALFORMED);
	if (inner.next == PROTO_IPV6 || inner.next == PROTO_IPIP)
		return drop(NESTED);
	if (inner.saddr[0] != outer.saddr[0] || inner.saddr[1] != outer.saddr[1] ||
	    inner.saddr[2] != outer.saddr[2] || inner.saddr[3] != outer.saddr[3])
		return drop(SPOOFED);
	ecn = ecn_inside(traffic_class(&outer), traffic_class(&inner));
	if (ecn < 0)
		return drop(ECN);
	if (ecn != (traffic_class(&inner) & ECN_MASK) &&
	    set_class(skb, OUTER + sizeof(outer), inner.class, (traffic_class(&inner) & ~ECN_MASK) | ecn))
		return drop(ECN);
	if (bpf_skb_adjust_room(skb, -(int)sizeof(outer), BPF_ADJ_ROOM_MAC,
				BPF_F_ADJ_ROOM_FIXED_GSO | BPF_F_ADJ_ROOM_DECAP_L3_IPV6))
		return drop(MALFORMED);
	count(DECAPSULATED, skb->gso_segs ? skb->gso_segs : 1);
	return TC_ACT_UNSPEC;
}

SEC("tc") int weft_decap(struct __sk_buff *skb)
{
	if (skb->protocol == bpf_htons(ETH_P_IPV6))
		return decap6(skb);
	if (skb->protocol != bpf_htons(ETH_P_IP) || reach(skb, INNER))
		return TC_ACT_UNSPEC;
	return decap4(skb);
}

char _license[] SEC("license") = "GPL";
