/* What the programs share. */

#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/pkt_cls.h>
#include <stddef.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_endian.h>

#define PACKET_HOST 0 /* linux/if_packet.h: addressed to this device */

#define PROTO_ICMP 1
#define PROTO_IPIP 4
#define PROTO_TCP 6
#define PROTO_IPV6 41

#define DONT_FRAGMENT bpf_htons(0x4000)
#define FRAGMENT bpf_htons(0x3fff) /* more fragments, or an offset */

enum { NOT_ECT, ECT1, ECT0, CE, ECN_MASK = 3 };

/* linux/ip.h's header has bit-fields that depend on the machine. */
struct ipv4 {
	__u8 version_ihl;
	__u8 tos;
	__be16 tot_len;
	__be16 id;
	__be16 frag_off;
	__u8 ttl;
	__u8 protocol;
	__sum16 check;
	__be32 saddr;
	__be32 daddr;
};

#define IP ETH_HLEN /* where the IP header starts */

static __always_inline int is_ipv4(const struct ipv4 *ip)
{
	return ip->version_ihl >> 4 == 4;
}

/* total_length is in bytes, IP header included. A TCP super-segment of more than 64 KB has 0 in
 * its header (BIG TCP), and there is nothing behind it in the packet. */
static __always_inline __u32 total_length(struct __sk_buff *skb, const struct ipv4 *ip)
{
	if (!ip->tot_len && ip->protocol == PROTO_TCP && skb->gso_size)
		return skb->len - IP;
	return bpf_ntohs(ip->tot_len);
}

/* fold adds the carries of a checksum back in. */
static __always_inline __u16 fold(__u32 sum)
{
	sum = (sum & 0xffff) + (sum >> 16);
	return (sum & 0xffff) + (sum >> 16);
}

/* header_length is in bytes, below 20 in a packet that is no good. */
static __always_inline __u32 header_length(const struct ipv4 *ip)
{
	return (ip->version_ihl & 15) * 4;
}
