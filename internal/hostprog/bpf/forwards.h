/* Notes the connections of containers and virtual machines behind this host (forwarded.h). */

/* Whether it does. The loader sets it. */
volatile const __u8 forwards = 0;

/* The network's MTU. The loader sets it. */
volatile const __u32 network_mtu = 0;

#define MSS 2 /* the option's kind, and its length is 4 */

/*
 * clamp has the other end of a connection send no more at once than goes with the outer header: it
 * lowers the MSS of a SYN (RFC 9293 §3.7.1), which all known stacks have as the first option. The
 * host's own TCP knows from its route. A container does not, and the kernel tells it no more often
 * than once a second, to all that it sends to.
 */
static __noinline int clamp(struct __sk_buff *skb, const struct inner *in, const struct rack *rack)
{
	__u32 longest = network_mtu - overhead(rack), at = IP + in->header, mss;
	struct {
		__u8 kind, length;
		__be16 value;
	} option = {};
	struct tcp tcp;
	__be16 most;

	if (bpf_skb_load_bytes(skb, at, &tcp, sizeof(tcp)) || !(tcp.flags & SYN))
		return 0;
	if (rack->longest && rack->longest < longest)
		longest = rack->longest;
	if (longest <= sizeof(struct ipv6) + 20)
		return 0;
	mss = longest - sizeof(struct ipv4) - 20;
	if (in->six)
		mss = longest - sizeof(struct ipv6) - 20;
	most = bpf_htons(mss);
	at += 20;
	if (tcp.offset >> 4 < 6 || bpf_skb_load_bytes(skb, at, &option, sizeof(option)) || option.kind != MSS ||
	    option.length != 4 || bpf_ntohs(option.value) <= mss)
		return 0;
	if (!bpf_l4_csum_replace(skb, IP + in->header + 16, option.value, most, sizeof(most)))
		bpf_skb_store_bytes(skb, at + 2, &most, sizeof(most), 0);
	return 0;
}

/*
 * note_forwarded notes the connection of a packet that this host forwards to a rack. What anybody can have
 * a host send, the answers to a SYN and to data without a connection, is no proof of one. It is a
 * function of its own for the same reason as draw.
 */
static __noinline int note_forwarded(struct __sk_buff *skb, const struct inner *in, const struct rack *rack)
{
	__u32 now = bpf_ktime_get_ns() >> 30, *seen;
	struct connection key = {};
	struct tcp tcp;

	if (in->protocol != PROTO_TCP || (!in->six && in->v4.frag_off & FRAGMENT) ||
	    bpf_skb_load_bytes(skb, IP + in->header, &tcp, sizeof(tcp)))
		return 0;
	if (tcp.flags & SYN)
		return clamp(skb, in, rack);
	if ((tcp.flags & (ACK | RST)) != ACK)
		return 0;
	if (in->six) {
		__builtin_memcpy(key.saddr, in->v6.daddr, sizeof(key.saddr));
		__builtin_memcpy(key.daddr, in->v6.saddr, sizeof(key.daddr));
	} else {
		map_ipv4(key.saddr, in->v4.daddr);
		map_ipv4(key.daddr, in->v4.saddr);
	}
	key.ports = tcp.ports << 16 | tcp.ports >> 16;
	seen = bpf_map_lookup_elem(&forwarded, &key);
	if (seen) {
		if (*seen != now)
			*seen = now;
		return 0;
	}
	if (!bpf_map_update_elem(&forwarded, &key, &now, BPF_ANY))
		count(FORWARDED, 1);
	return 0;
}
