/* To whom a packet of either family is, and whose it is; behind packet.h and the constants rule
 * and seed. */

#define PROTO_UDP 17
#define PROTO_DCCP 33
#define PROTO_ROUTING 43 /* a header of IPv6 */
#define PROTO_SCTP 132

#define MAX_ROUTES 65536
#define NO_SET 0

struct destination {
	__u32 bits;
	__be32 addr;
};

struct destination6 {
	__u32 bits;
	__u8 addr[16];
};

/* linux/ipv6.h's header has bit-fields that depend on the machine. */
struct ipv6 {
	__be32 version_class_label;
	__be16 payload_len;
	__u8 next;
	__u8 hops;
	__be64 saddr[2];
	__be64 daddr[2];
};

/* Hashes of the pair of hosts, and of the flow, that a packet is of. */
struct who {
	__u64 pair;
	__u64 flow;
};

/* By destination the number of a set. The loader writes these. */
struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(max_entries, MAX_ROUTES);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct destination);
	__type(value, __u32);
} destinations SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(max_entries, MAX_ROUTES);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct destination6);
	__type(value, __u32);
} destinations6 SEC(".maps");

static __always_inline __u64 mix(__u64 x)
{
	x ^= x >> 33;
	x *= 0xff51afd7ed558ccd;
	x ^= x >> 33;
	x *= 0xc4ceb9fe1a85ec53;
	return x ^ x >> 33;
}

static __always_inline int has_ports(__u8 protocol)
{
	return protocol == PROTO_TCP || protocol == PROTO_UDP || protocol == PROTO_DCCP || protocol == PROTO_SCTP;
}

/* ports_at are 0 where there are none. */
static __always_inline __u32 ports_at(struct __sk_buff *skb, __u32 offset)
{
	__be32 ports;

	return bpf_skb_load_bytes(skb, offset, &ports, sizeof(ports)) ? 0 : bpf_ntohl(ports);
}

/* ports_of are 0 for fragments, so that all of a packet are of one flow. */
static __always_inline __u32 ports_of(struct __sk_buff *skb, const struct ipv4 *ip)
{
	if (!has_ports(ip->protocol) || ip->frag_off & FRAGMENT || header_length(ip) < sizeof(*ip))
		return 0;
	return ports_at(skb, IP + header_length(ip));
}

/* set_of4 returns the number of the set of an IPv4 packet's destination, and says whose the
 * packet is, as far as the rule wants to know it. */
static __always_inline __u32 set_of4(struct __sk_buff *skb, struct who *who)
{
	struct destination to = { .bits = 32 };
	struct ipv4 ip;
	__u32 *number;

	if (bpf_skb_load_bytes(skb, IP, &ip, sizeof(ip)) || !is_ipv4(&ip))
		return NO_SET;
	if (ip.protocol == PROTO_IPIP) /* weft's: the sender has chosen the way */
		return NO_SET;
	to.addr = ip.daddr;
	number = bpf_map_lookup_elem(&destinations, &to);
	if (!number)
		return NO_SET;
	if (rule == DRB || rule == LETFLOW || rule == DRILL)
		who->pair = mix(seed ^ ((__u64)bpf_ntohl(ip.saddr) << 32 | bpf_ntohl(ip.daddr)));
	if (rule == LETFLOW || rule == DRILL)
		who->flow = mix(who->pair ^ ((__u64)ip.protocol << 32 | ports_of(skb, &ip)));
	return *number;
}

/* set_of6 is set_of4 of IPv6. Behind an extension header it looks for no ports: the flow label
 * stands for them. */
static __always_inline __u32 set_of6(struct __sk_buff *skb, struct who *who)
{
	struct destination6 to = { .bits = 128 };
	__u32 *number, ports;
	struct ipv6 ip;

	if (bpf_skb_load_bytes(skb, IP, &ip, sizeof(ip)) || bpf_ntohl(ip.version_class_label) >> 28 != 6)
		return NO_SET;
	/* Who encapsulates, or lists segments, has chosen the way. */
	if (ip.next == PROTO_IPIP || ip.next == PROTO_IPV6 || ip.next == PROTO_ROUTING)
		return NO_SET;
	__builtin_memcpy(to.addr, ip.daddr, sizeof(to.addr));
	number = bpf_map_lookup_elem(&destinations6, &to);
	if (!number)
		return NO_SET;
	if (rule == DRB || rule == LETFLOW || rule == DRILL) {
		who->pair = mix(seed ^ bpf_be64_to_cpu(ip.saddr[0]));
		who->pair = mix(who->pair ^ bpf_be64_to_cpu(ip.saddr[1]));
		who->pair = mix(who->pair ^ bpf_be64_to_cpu(ip.daddr[0]));
		who->pair = mix(who->pair ^ bpf_be64_to_cpu(ip.daddr[1]));
	}
	if (rule == LETFLOW || rule == DRILL) {
		ports = has_ports(ip.next) ? ports_at(skb, IP + sizeof(ip)) : bpf_ntohl(ip.version_class_label) & 0xfffff;
		who->flow = mix(who->pair ^ ((__u64)ip.next << 32 | ports));
	}
	return *number;
}
