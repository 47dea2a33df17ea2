/* IPv6 as weft's packets have it; behind packet.h. */

/* linux/ipv6.h's header has bit-fields that depend on the machine. */
struct ipv6 {
	__be32 class; /* version, traffic class, flow label */
	__be16 payload; /* bytes behind this header */
	__u8 next;
	__u8 hops;
	__be32 saddr[4];
	__be32 daddr[4];
};

/* The beginning of the address of who has an IPv4 one, which is its end; 0 is
 * between (weft/topology.Addr6). */
#define ADDR6_0 bpf_htonl(0xfd776566)
#define ADDR6_1 bpf_htonl(0x74000000)

/* traffic_class is what IPv4 calls TOS. */
static __always_inline __u8 traffic_class(const struct ipv6 *ip)
{
	return bpf_ntohl(ip->class) >> 20;
}

static __always_inline int is_ipv6(const struct ipv6 *ip)
{
	return bpf_ntohl(ip->class) >> 28 == 6;
}
