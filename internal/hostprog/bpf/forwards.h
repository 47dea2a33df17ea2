/* Notes the connections of containers and virtual machines behind this host (behind.h). */

/* Whether it does. The loader sets it. */
volatile const __u8 forwards = 0;

/*
 * note_forwarded notes the connection of a packet that this host forwards. What anybody can have
 * a host send, the answers to a SYN and to data without a connection, is no proof of one. It is a
 * function of its own for the same reason as draw.
 */
static __noinline int note_forwarded(struct __sk_buff *skb, const struct inner *in)
{
	__u32 now = bpf_ktime_get_ns() >> 30, *seen;
	struct connection key = {};
	struct tcp tcp;

	if (in->protocol != PROTO_TCP || (!in->six && in->v4.frag_off & FRAGMENT) ||
	    bpf_skb_load_bytes(skb, IP + in->header, &tcp, sizeof(tcp)) || (tcp.flags & (ACK | SYN | RST)) != ACK)
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
