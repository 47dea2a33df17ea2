/* What the programs that look inside encapsulated packets share; behind packet.h. */

/*
 * reach makes the first len bytes readable; they may sit in page fragments. It
 * pulls only where it must: pulling copies the header of a cloned packet, and
 * all that TCP sends is cloned.
 */
static __always_inline int reach(struct __sk_buff *skb, __u32 len)
{
	if ((void *)(long)skb->data + len <= (void *)(long)skb->data_end)
		return 0;
	return bpf_skb_pull_data(skb, len);
}

/*
 * ecn_inside is what a packet's ECN field becomes when the outer header is taken off
 * (RFC 6040 figure 4), -1 if the packet must be dropped. outer and inner are the two TOS
 * bytes.
 */
static __always_inline int ecn_inside(__u8 outer, __u8 inner)
{
	__u8 o = outer & ECN_MASK, i = inner & ECN_MASK;

	if (o == CE && i == NOT_ECT)
		return -1;
	return (o == CE && i != CE) || (o == ECT1 && i == ECT0) ? o : i;
}

/* carry_ecn moves a congestion mark from the outer header to the inner one of IPv4,
 * which starts at the offset ip. */
static __always_inline int carry_ecn(struct __sk_buff *skb, __u32 ip, __u8 version_ihl, __u8 outer, __u8 inner)
{
	int ecn = ecn_inside(outer, inner);
	__u8 tos = (inner & ~ECN_MASK) | ecn;

	if (ecn < 0)
		return -1;
	if (tos == inner)
		return 0;
	if (bpf_l3_csum_replace(skb, ip + offsetof(struct ipv4, check),
				bpf_htons(version_ihl << 8 | inner), bpf_htons(version_ihl << 8 | tos), 2))
		return -1;
	return bpf_skb_store_bytes(skb, ip + offsetof(struct ipv4, tos), &tos, sizeof(tos), 0);
}
