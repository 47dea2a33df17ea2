/*
 * The outer headers: IP-in-IP to a bouncing switch (RFC 2003; of IPv6, RFC 2473), or IPv6
 * with labels as micro-SIDs in its destination (RFC 9800). They are what
 * weft/encap.Outer writes.
 */

#define HOP_LIMIT 64

static __always_inline __u32 overhead(const struct rack *rack)
{
	return rack->outer == IPV4 ? sizeof(struct ipv4) : sizeof(struct ipv6);
}

/* no_length reports a packet whose outer IPv4 header cannot say how long it is. Its length is
 * 0 there (BIG TCP), and in the inner header where that cannot say it either. */
static __always_inline int no_length(const struct inner *in)
{
	return in->length + sizeof(struct ipv4) > 0xffff;
}

/*
 * too_long reports a packet that does not fit with the outer header. Routes of a host
 * that sprays have an MTU that leaves room for it, so the kernel's TCP makes longer
 * packets only where that route is missing. An IPv6 header's length excludes itself. In IPv4
 * the kernel takes TCP's super-segments without a length (no_length).
 */
static __always_inline int too_long(struct __sk_buff *skb, const struct inner *in, __u32 each, const struct rack *rack)
{
	__u32 mtu = 0; /* in: check the packet; out: the device's */
	__u32 outer = overhead(rack);

	if (rack->outer == IPV4 ? no_length(in) && !(skb->gso_size && in->protocol == PROTO_TCP) : in->length > 0xffff)
		return 1;
	/* Of a super-segment the kernel would check nothing here. */
	if (bpf_check_mtu(skb, 0, &mtu, outer, 0) > 0)
		return 1;
	return skb->gso_size && mtu && each + skb->gso_size + outer > mtu;
}

/* make_room leaves super-segments whole. The kernel refuses what is in another
 * tunnel of its own already, which is then as it was. */
static __always_inline int make_room(struct __sk_buff *skb, __u32 bytes, __u64 kind)
{
	return bpf_skb_adjust_room(skb, bytes, BPF_ADJ_ROOM_MAC,
				   BPF_F_ADJ_ROOM_FIXED_GSO | BPF_F_ADJ_ROOM_NO_CSUM_RESET | kind);
}

/*
 * bounce puts IP-in-IP before a packet, with the inner packet's ID: a device that cuts
 * super-segments counts up in both headers. The inner header may have a new ID and
 * is written with the outer header: making room has made both private.
 */
static __always_inline int bounce(struct __sk_buff *skb, const struct ipv4 *ip, __u32 length, __be32 to)
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
			.daddr = to,
		},
		.inner = *ip,
	};

	h.outer.check = ~fold(bpf_csum_diff(0, 0, (__be32 *)&h.outer, sizeof(h.outer), 0));
	if (make_room(skb, sizeof(h.outer), BPF_F_ADJ_ROOM_ENCAP_L3_IPV4))
		return unable(REFUSED);
	if (bpf_skb_store_bytes(skb, IP, &h, sizeof(h), 0))
		return drop(BROKEN); /* the room cannot be given back */
	return TC_ACT_OK;
}

/* wrap4in6 puts IPv6 before an IPv4 packet. */
static __always_inline int wrap4in6(struct __sk_buff *skb, const struct ipv4 *ip, __u32 length,
				    const __be32 *from, const __be32 *to)
{
	struct {
		struct ipv6 outer;
		struct ipv4 inner;
	} h = {
		.outer = {
			.class = bpf_htonl(6 << 28 | (__u32)ip->tos << 20),
			.payload = bpf_htons(length),
			.next = PROTO_IPIP,
			.hops = HOP_LIMIT,
		},
		.inner = *ip,
	};
	__be16 type = bpf_htons(ETH_P_IPV6);

	__builtin_memcpy(h.outer.saddr, from, sizeof(h.outer.saddr));
	__builtin_memcpy(h.outer.daddr, to, sizeof(h.outer.daddr));
	if (make_room(skb, sizeof(h.outer), BPF_F_ADJ_ROOM_ENCAP_L3_IPV6))
		return unable(REFUSED);
	if (bpf_skb_store_bytes(skb, IP, &h, sizeof(h), 0) ||
	    bpf_skb_store_bytes(skb, offsetof(struct ethhdr, h_proto), &type, sizeof(type), 0))
		return drop(BROKEN); /* the room cannot be given back */
	return TC_ACT_OK;
}

/* label leads a packet to the rack's labels, with the path's in the gap behind the
 * block. */
static __always_inline int label(struct __sk_buff *skb, const struct ipv4 *ip, __u32 length,
				 const struct rack *rack, __be32 path)
{
	__be32 from[4] = { ADDR6_0, ADDR6_1, 0, ip->saddr };
	union sids to;

	/* By 64 bits: without CAP_PERFMON no part of a place may be written to in which the
	 * compiler has kept a pointer. */
	to.half[0] = rack->sids.half[0] | bpf_cpu_to_be64((__u64)bpf_ntohl(path) << 16);
	to.half[1] = rack->sids.half[1];
	return wrap4in6(skb, ip, length, from, to.address.word);
}

/* bounce6 puts IPv6 before an IPv6 packet. The outer label stays 0: the way to a
 * bouncing switch is the switches' choice, whatever is inside. */
static __always_inline int bounce6(struct __sk_buff *skb, const struct ipv6 *ip, __u32 length,
				   const struct address6 *to)
{
	struct {
		struct ipv6 outer, inner;
	} h = {
		.outer = {
			.class = ip->class & bpf_htonl(0xfff00000),
			.payload = bpf_htons(length),
			.next = PROTO_IPV6,
			.hops = HOP_LIMIT,
		},
		.inner = *ip,
	};

	__builtin_memcpy(h.outer.saddr, ip->saddr, sizeof(h.outer.saddr));
	__builtin_memcpy(h.outer.daddr, to, sizeof(h.outer.daddr));
	if (make_room(skb, sizeof(h.outer), BPF_F_ADJ_ROOM_ENCAP_L3_IPV6))
		return unable(REFUSED);
	if (bpf_skb_store_bytes(skb, IP, &h, sizeof(h), 0))
		return drop(BROKEN); /* the room cannot be given back */
	return TC_ACT_OK;
}

static __always_inline int encapsulate(struct __sk_buff *skb, const struct inner *in, const struct rack *rack,
				       __be32 path, const struct address6 *to)
{
	if (in->six)
		return bounce6(skb, &in->v6, in->length, to);
	if (rack->outer == IPV6) {
		__be32 from[4] = { source6[0], source6[1], source6[2], source6[3] };

		return wrap4in6(skb, &in->v4, in->length, from, to->word);
	}
	if (rack->outer == LABELS)
		return label(skb, &in->v4, in->length, rack, path);
	return bounce(skb, &in->v4, in->length, path);
}
