/*
 * What arrives at the uplink, before a program that keeps packets from the kernel (steer.c,
 * order.c): under CONGA marks are taken in and off, and where this host forwards SYNs are clamped.
 */

/* Whether the policy is CONGA. The loader sets it. */
volatile const __u8 heeding = 0;

/* turn_round changes the addresses of a packet. */
static __always_inline void turn_round(struct inner *in)
{
	struct address6 to;

	if (!in->six) {
		__be32 to4 = in->v4.daddr;

		in->v4.daddr = in->v4.saddr;
		in->v4.saddr = to4;
		return;
	}
	__builtin_memcpy(&to, in->v6.daddr, sizeof(to));
	__builtin_memcpy(in->v6.daddr, in->v6.saddr, sizeof(to));
	__builtin_memcpy(in->v6.saddr, &to, sizeof(to));
}

/* comes clamps the MSS of a SYN that comes out of another rack for what may be behind this host.
 * To a socket of this host it says what its route says. */
static __always_inline void comes(struct __sk_buff *skb)
{
	struct rack *rack;
	struct inner in;
	__u8 *to;
	__u8 flags;

	if (!load(skb, &in))
		return;
	look(skb, &in);
	if (in.protocol != PROTO_TCP || (!in.six && in.v4.frag_off & FRAGMENT) ||
	    bpf_skb_load_bytes(skb, IP + in.header + 13, &flags, sizeof(flags)) || !(flags & SYN))
		return;
	turn_round(&in);
	to = own_of(&in);
	if (!to)
		return;
	rack = rack_of(&in);
	if (rack)
		clamp(skb, &in, rack);
}

/*
 * Takes in what packets that arrive say of congestion, and takes CONGA's marks off, so that
 * the kernel gets the DSCP that the sender's TCP has set: 0. Only the mark of a packet counts
 * whose sender has shown that it sees what is sent to it: anybody could send others, in the name
 * of any host. IDs stay: with DF set nobody reads them.
 */
static __always_inline int heeds(struct __sk_buff *skb)
{
	struct flow_key key;
	struct ipv4 ip;
	struct tcp tcp;
	int proven = 0;
	__u16 was, is;

	if (skb->protocol != bpf_htons(ETH_P_IP) || bpf_skb_load_bytes(skb, IP, &ip, sizeof(ip)))
		return TC_ACT_UNSPEC;
	if (!is_ipv4(&ip) || ip.protocol != PROTO_TCP || ip.frag_off & FRAGMENT ||
	    (!bpf_map_lookup_elem(&own, &ip.daddr) && !behind_at4(ip.daddr)))
		return TC_ACT_UNSPEC;
	if (!bpf_skb_load_bytes(skb, IP + header_length(&ip), &tcp, sizeof(tcp)) && tcp.flags & ACK) {
		key.saddr = ip.daddr;
		key.daddr = ip.saddr;
		key.ports = tcp.ports << 16 | tcp.ports >> 16;
		proven = acknowledged(&key, bpf_ntohl(tcp.ack));
	}
	if (ip.version_ihl != 0x45 || ip.tos >> 2 != MARK_DSCP || !(ip.frag_off & DONT_FRAGMENT))
		return TC_ACT_UNSPEC;
	count(MARKED, 1);
	if (proven)
		heed(ip.saddr, bpf_ntohs(ip.id));
	else
		count(UNPROVEN, 1);
	was = bpf_htons((__u16)ip.version_ihl << 8 | ip.tos);
	ip.tos &= ECN_MASK;
	is = bpf_htons((__u16)ip.version_ihl << 8 | ip.tos);
	if (!bpf_l3_csum_replace(skb, IP + offsetof(struct ipv4, check), was, is, sizeof(is)))
		bpf_skb_store_bytes(skb, IP, &is, sizeof(is), 0);
	return TC_ACT_UNSPEC;
}

SEC("tc") int weft_heed(struct __sk_buff *skb)
{
	if (forwards)
		comes(skb);
	return heeding ? heeds(skb) : TC_ACT_UNSPEC;
}
