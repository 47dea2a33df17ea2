/*
 * An extension of weft switch: packets of lower effort (DSCP 1, RFC 8622), such as those of
 * backups, are dropped as soon as more than a millisecond of queue waits at the port.
 */

#include <linux/if_ether.h>
#include "weft_extension.h"
#include <bpf/bpf_endian.h>

#define LOWER_EFFORT 1

/* How many were dropped, by CPU: bpftool map dump name scavenged. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} scavenged SEC(".maps");

SEC("tc") int scavenger(struct __sk_buff *skb)
{
	__u64 millisecond = skb->cb[WEFT_RATE] / 8; /* bytes */
	__u32 zero = 0;
	__u64 *count;
	__u8 tos;

	if (skb->protocol != bpf_htons(ETH_P_IP) || skb->cb[WEFT_QUEUE] <= millisecond)
		return weft_next(skb);
	if (bpf_skb_load_bytes(skb, ETH_HLEN + 1, &tos, sizeof(tos)) || tos >> 2 != LOWER_EFFORT)
		return weft_next(skb);
	count = bpf_map_lookup_elem(&scavenged, &zero);
	if (count)
		++*count;
	return TC_ACT_SHOT;
}

char _license[] SEC("license") = "GPL";
