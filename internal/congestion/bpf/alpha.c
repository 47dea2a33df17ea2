// DCTCP's arithmetic alone, for tests: congestion controls cannot be run by BPF_PROG_TEST_RUN.

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include "alpha.h"

/* A packet: what is known and what an ACK says, and what comes of it. */
struct step {
	struct dctcp d;
	__u32 una;
	__u32 nxt;
	__u32 delivered;
	__u32 delivered_ce;
	__u32 cwnd; /* and what is believed of it */
	__u32 ssthresh;
	__u32 state;
	__u32 reduced;
};

SEC("tc")
int weft_alpha(struct __sk_buff *skb)
{
	struct step *s = (void *)(long)skb->data;

	if ((void *)(s + 1) > (void *)(long)skb->data_end)
		return 1;
	acknowledge(&s->d, s->una, s->nxt, s->delivered, s->delivered_ce);
	s->reduced = reduced(s->cwnd, s->d.alpha);
	s->cwnd = believed(&s->d, s->cwnd);
	s->ssthresh = threshold(&s->d, s->cwnd, s->ssthresh, s->state);
	return 0;
}
