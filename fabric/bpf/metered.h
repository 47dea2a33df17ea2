/* What a packet is to a port's meter. */

#define PROTO_UDP 17
#define PROTO_ICMPV6 58
#define ND_FIRST 133 /* types of ICMPv6: neighbour discovery (RFC 4861) */
#define ND_LAST 137
#define ND_HOPS 255 /* no switch has forwarded it */
#define MAX_OUTER 2 /* IP-in-IP headers that are looked behind */

struct packet {
	__u32 ipv4; /* where the innermost header is; 0: none */
	__u32 l4; /* where what follows the last header known is; 0: none is known */
	__u32 segments;
	__u32 wire; /* bytes of all segments, with the headers that each of them gets */
	struct ipv4 ip; /* the innermost header */
	__u8 protocol; /* of l4 */
	__u8 class; /* TOS or traffic class of the outermost header, 0 if there is none */
	__u8 ecn; /* of class */
	__u8 discovery; /* ARP, or IPv6's neighbour discovery */
};

/*
 * parse finds the innermost IPv4 header behind what weft puts before it: one IPv6
 * header, or up to two IPv4 ones. Options and fragments end the search: hosts that
 * spray packets do not send them.
 */
static __always_inline void parse(struct __sk_buff *skb, struct packet *p)
{
	struct ipv6 outer;
	__u32 at = IP;
	__u8 type;

	if (skb->protocol == bpf_htons(ETH_P_IPV6)) {
		if (bpf_skb_load_bytes(skb, at, &outer, sizeof(outer)))
			return;
		p->class = traffic_class(&outer);
		p->ecn = p->class & ECN_MASK;
		p->l4 = at + sizeof(outer);
		p->protocol = outer.next;
		if (outer.next == PROTO_ICMPV6 && outer.hops == ND_HOPS)
			p->discovery = !bpf_skb_load_bytes(skb, p->l4, &type, sizeof(type)) && type >= ND_FIRST && type <= ND_LAST;
		if (outer.next != PROTO_IPIP)
			return;
		at += sizeof(outer);
	} else if (skb->protocol != bpf_htons(ETH_P_IP)) {
		p->discovery = skb->protocol == bpf_htons(ETH_P_ARP);
		return;
	}
	if (bpf_skb_load_bytes(skb, at, &p->ip, sizeof(p->ip)))
		return;
	if (at == IP) {
		p->class = p->ip.tos;
		p->ecn = p->class & ECN_MASK;
#pragma unroll
		for (int i = 0; i < MAX_OUTER; i++) {
			if (p->ip.version_ihl != 0x45 || p->ip.protocol != PROTO_IPIP || p->ip.frag_off & FRAGMENT)
				break;
			at += sizeof(p->ip);
			if (bpf_skb_load_bytes(skb, at, &p->ip, sizeof(p->ip)))
				return;
		}
	}
	if (!is_ipv4(&p->ip) || header_length(&p->ip) < sizeof(p->ip) || p->ip.frag_off & FRAGMENT)
		return;
	p->ipv4 = at;
	p->l4 = at + header_length(&p->ip);
	p->protocol = p->ip.protocol;
}

/*
 * weigh finds what a super-segment becomes. The kernel's own wire_len does not
 * know of the headers inside a tunnel's.
 */
static __always_inline void weigh(struct __sk_buff *skb, struct packet *p)
{
	__u32 each = p->l4 + 8; /* UDP */
	__u8 offset;

	p->wire = skb->len;
	p->segments = 1;
	if (!skb->gso_size)
		return;
	if (p->protocol == PROTO_TCP && !bpf_skb_load_bytes(skb, p->l4 + 12, &offset, sizeof(offset)))
		each = p->l4 + (offset >> 4) * 4;
	if (p->wire <= each)
		return;
	/* Those of userspace come uncounted. */
	p->segments = (p->wire - each + skb->gso_size - 1) / skb->gso_size;
	p->wire += (p->segments - 1) * each;
}
