/* What hosts may send, and what is written into their packets' headers. */

/* mark gives an IPv4 header another DSCP and ID. */
static __always_inline void mark(struct ipv4 *ip, __u8 dscp, __be16 id)
{
	struct ipv4 was = *ip;
	__be32 old[2], new[2];

	ip->tos = dscp << 2 | (ip->tos & ECN_MASK);
	ip->id = id;
	__builtin_memcpy(old, &was, sizeof(old));
	__builtin_memcpy(new, ip, sizeof(new));
	ip->check = ~fold(bpf_csum_diff(old, sizeof(old), new, sizeof(new), (__u16)~ip->check));
}

/* unmark takes a mark off a packet whose header is ip. */
static __always_inline int unmark(struct __sk_buff *skb, struct ipv4 *ip)
{
	mark(ip, 0, bpf_htons(MARK_INDEX));
	return bpf_skb_store_bytes(skb, IP, ip, sizeof(*ip), 0);
}

/* marked reports a packet that carries a mark of CONGA's, or what claims to be one. */
static __always_inline int marked(const struct ipv4 *ip)
{
	return ip->protocol == PROTO_TCP && ip->tos >> 2 == MARK_DSCP && ip->frag_off & DONT_FRAGMENT &&
	       !(ip->frag_off & FRAGMENT);
}

/* spoofs reports an IP-in-IP packet that its sender has no right to send. The outer source is the
 * host's. Of what goes to a switch, the inner one is the same: a switch takes the header off, and
 * what is inside may have a mark. */
static __noinline int spoofs(struct __sk_buff *skb, const struct ipv4 *ip, const struct port *port)
{
	struct ipv4 inner;

	if (!ip->saddr || (ip->saddr != port->host[0] && ip->saddr != port->host[1]))
		return 1;
	if (rack_of(ip->daddr) != NO_RACK)
		return 0;
	if (ip->version_ihl != 0x45 || ip->frag_off & FRAGMENT ||
	    bpf_skb_load_bytes(skb, IP + sizeof(*ip), &inner, sizeof(inner)))
		return 1;
	return !is_ipv4(&inner) || inner.protocol == PROTO_IPIP || inner.saddr != ip->saddr;
}
