// The detour around a TUN whose reader hangs: sends packets for the TUN out of the
// uplink instead, unchanged, so that the kernel's TCP continues.
//
// Runs at tc egress of the TUN, which has no Ethernet headers. While the reader's
// heartbeat comes in time it touches nothing.

#include "packet.h"

/* The order of hostprog.DetourStats. */
enum { DETOURED, STUCK, NUM_COUNTERS };

#include "count.h"
#include "heart.h"

/* The uplink's interface index, and the next hops there of both families, 0 where the
 * routing table is to say. The loader sets them. */
volatile const __u32 uplink = 0;
volatile const __be32 gateway = 0;
volatile const __be32 gateway6[4] = {};

#define FAMILY_INET 2
#define FAMILY_INET6 10

SEC("tc") int weft_detour(struct __sk_buff *skb)
{
	__u64 segs = skb->gso_segs ? skb->gso_segs : 1;
	int six = skb->protocol == bpf_htons(ETH_P_IPV6), known;
	struct bpf_redir_neigh next;

	if ((skb->protocol != bpf_htons(ETH_P_IP) && !six) || !unattended())
		return TC_ACT_UNSPEC;
	/* The kernel writes the uplink's header over this one. */
	if (bpf_skb_change_head(skb, ETH_HLEN, 0))
		return pass(STUCK);
	count(DETOURED, segs);
	/* Without CAP_PERFMON a program may pass on no stack that it has not written. */
	__builtin_memset(&next, 0, sizeof(next));
	if (six) {
		next.nh_family = FAMILY_INET6;
		for (int i = 0; i < 4; i++)
			next.ipv6_nh[i] = gateway6[i];
		known = next.ipv6_nh[0] != 0;
	} else {
		next.nh_family = FAMILY_INET;
		next.ipv4_nh = gateway;
		known = gateway != 0;
	}
	if (known)
		return bpf_redirect_neigh(uplink, &next, sizeof(next), 0);
	return bpf_redirect_neigh(uplink, NULL, 0, 0);
}

char _license[] SEC("license") = "GPL";
