// Steering at a host's uplink: takes packets from the kernel that a program reads
// from a packet socket, so that they are not processed twice.
//
// Runs at tc ingress of an Ethernet device, behind the packet sockets, which have
// seen every packet by then. It must take exactly the packets that the socket's own
// filter passes (hostprog.Steer.Filter). When the reader's heartbeat stops, the
// kernel gets everything again: a dead program must not take the host off the
// network.

#include "packet.h"
#include "ipv6.h"

#define MAX_ADDRESSES 16 /* hostprog.maxSteered */
#define PROTO_ICMPV6 58

/* The bits of hostprog.Steered. */
enum { TCP = 1, EVERYTHING = 2, TUNNEL_ERRORS = 4 };

/* The order of hostprog.SteerStats. */
enum { TAKEN, PASSED_DEAD, SEEN, NUM_COUNTERS };

#include "count.h"
#include "heart.h"
#include "behind.h"

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MAX_ADDRESSES);
	__type(key, __be32);
	__type(value, __u8);
} steered SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MAX_ADDRESSES);
	__type(key, __be32[4]);
	__type(value, __u8);
} steered6 SEC(".maps");

/*
 * is_tunnel_error reports an ICMP error about an IP-in-IP packet that the error's
 * receiver has sent. A switch quotes the outer header, for which the kernel knows no
 * socket. at is where the ICMP header starts.
 */
static __always_inline int is_tunnel_error(struct __sk_buff *skb, __u32 at, __be32 daddr)
{
	struct ipv4 about;
	__u8 type;

	if (bpf_skb_load_bytes(skb, at, &type, sizeof(type)) ||
	    bpf_skb_load_bytes(skb, at + 8, &about, sizeof(about)))
		return 0;
	/* Destination unreachable, time exceeded, parameter problem. */
	return (type == 3 || type == 11 || type == 12) && is_ipv4(&about) &&
	       about.protocol == PROTO_IPIP && about.saddr == daddr;
}

/* is_tunnel_error6 reports the same of an ICMPv6 error about IPv6 or IPv4 in IPv6. */
static __always_inline int is_tunnel_error6(struct __sk_buff *skb, const struct ipv6 *ip)
{
	__u32 at = IP + sizeof(*ip);
	struct ipv6 about;
	__u8 type;

	if (bpf_skb_load_bytes(skb, at, &type, sizeof(type)) ||
	    bpf_skb_load_bytes(skb, at + 8, &about, sizeof(about)))
		return 0;
	/* Destination unreachable, too big, time exceeded, parameter problem. */
	return type >= 1 && type <= 4 && is_ipv6(&about) && (about.next == PROTO_IPV6 || about.next == PROTO_IPIP) &&
	       about.saddr[0] == ip->daddr[0] && about.saddr[1] == ip->daddr[1] &&
	       about.saddr[2] == ip->daddr[2] && about.saddr[3] == ip->daddr[3];
}

/*
 * is_neighbours reports whether an ICMPv6 packet is for the kernel whoever has the address:
 * the messages of neighbours and routers (RFC 4861), types 133 to 137, by which the kernel
 * answers for an address in its segment. What has no type is for nobody else either.
 */
static __always_inline int is_neighbours(struct __sk_buff *skb)
{
	__u8 type;

	return bpf_skb_load_bytes(skb, IP + sizeof(struct ipv6), &type, sizeof(type)) ||
	       (type >= 133 && type <= 137);
}

/*
 * wanted6 takes nothing with extension headers, fragments included, for an address that has
 * not everything. A super-segment of more than 64 KB (BIG TCP) has no length, or a header
 * before TCP's.
 */
static __always_inline int wanted6(struct __sk_buff *skb)
{
	struct ipv6 ip;
	__u8 *what;

	if (bpf_skb_load_bytes(skb, IP, &ip, sizeof(ip)) || !is_ipv6(&ip) || !ip.payload)
		return 0;
	what = bpf_map_lookup_elem(&steered6, ip.daddr);
	if (!what)
		return ip.next == PROTO_TCP && behind_at(ip.daddr);
	if (ip.next == PROTO_IPV6 || ip.next == PROTO_IPIP)
		return 0;
	if (ip.next == PROTO_ICMPV6 && is_neighbours(skb))
		return 0;
	if (*what & EVERYTHING)
		return 1;
	if (ip.next == PROTO_TCP)
		return *what & TCP;
	return ip.next == PROTO_ICMPV6 && *what & TUNNEL_ERRORS && is_tunnel_error6(skb, &ip);
}

/* wanted4 leaves to the kernel what is longer than its header can say (BIG TCP). */
static __always_inline int wanted4(struct __sk_buff *skb)
{
	struct ipv4 ip;
	__u8 *what;

	if (bpf_skb_load_bytes(skb, IP, &ip, sizeof(ip)) || !is_ipv4(&ip) || header_length(&ip) < sizeof(ip))
		return 0;
	what = bpf_map_lookup_elem(&steered, &ip.daddr);
	if (!what)
		return ip.protocol == PROTO_TCP && !(ip.frag_off & FRAGMENT) && ip.tot_len && behind_at4(ip.daddr);
	if (ip.protocol == PROTO_IPIP)
		return 0;
	if (*what & EVERYTHING)
		return 1;
	if (ip.frag_off & FRAGMENT || !ip.tot_len)
		return 0;
	if (ip.protocol == PROTO_TCP)
		return *what & TCP;
	if (ip.protocol == PROTO_ICMP && *what & TUNNEL_ERRORS)
		return is_tunnel_error(skb, IP + header_length(&ip), ip.daddr);
	return 0;
}

static __always_inline int wanted(struct __sk_buff *skb)
{
	__be16 type;

	if (skb->pkt_type != PACKET_HOST || skb->vlan_present)
		return 0;
	if (bpf_skb_load_bytes(skb, offsetof(struct ethhdr, h_proto), &type, sizeof(type)))
		return 0;
	if (type == bpf_htons(ETH_P_IPV6))
		return wanted6(skb);
	return type == bpf_htons(ETH_P_IP) && wanted4(skb);
}

SEC("tc") int weft_steer(struct __sk_buff *skb)
{
	__u64 segs = skb->gso_segs ? skb->gso_segs : 1;

	count(SEEN, 1);
	if (!wanted(skb))
		return TC_ACT_UNSPEC;
	if (unattended()) {
		count(PASSED_DEAD, segs);
		return TC_ACT_UNSPEC;
	}
	count(TAKEN, segs);
	return TC_ACT_SHOT;
}

char _license[] SEC("license") = "GPL";
