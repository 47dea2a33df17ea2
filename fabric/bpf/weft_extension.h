/*
 * For extensions of weft switch: tc programs of your own that see each packet which leaves a
 * metered port, behind the meter (thesis §5.2.1, step 4, and §5.2.2). docs: examples/extension.
 *
 * An extension may read, change and drop the packet. What it finds in skb->cb:
 *
 *   cb[WEFT_QUEUE]    bytes of virtual queue that the packet found
 *   cb[WEFT_AVERAGE]  the same, smoothed, where the port has RED; else 0
 *   cb[WEFT_RATE]     of the port, in kbit/s
 *   cb[WEFT_MARKED]   1: the meter wanted to mark the packet
 *   cb[WEFT_NUMBER]   the extension's number among those that run, from 0; weft_next counts it up
 *
 * End it with "return weft_next(skb);", which goes on with the next extension, or with
 * TC_ACT_SHOT, which drops the packet. Any other verdict ends the list, and also leaves out
 * weft's programs that follow the meter at the port: weft-class and weft-queue.
 */

#include <linux/bpf.h>
#include <linux/pkt_cls.h>
#include <bpf/bpf_helpers.h>

#define WEFT_EXTENSIONS 8

enum { WEFT_QUEUE, WEFT_AVERAGE, WEFT_RATE, WEFT_MARKED, WEFT_NUMBER };

/* Filled by weft, which gives the map to each object that declares it. */
struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, WEFT_EXTENSIONS);
	__type(key, __u32);
	__type(value, __u32);
} weft_extensions SEC(".maps");

static __always_inline int weft_next(struct __sk_buff *skb)
{
	skb->cb[WEFT_NUMBER]++;
	bpf_tail_call(skb, &weft_extensions, skb->cb[WEFT_NUMBER]);
	return TC_ACT_UNSPEC;
}
