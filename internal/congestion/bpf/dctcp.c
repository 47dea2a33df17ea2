// DCTCP for a kernel without tcp_dctcp (RFC 8257): a congestion control as programs of a
// struct_ops map. They do what tcp_dctcp.c of Linux 6.18 does, but that the window is
// reduced at once, as the RFC has it, and not over a round trip. Slow start and the growth
// of the window are Reno's. A context is an array of a function's arguments.

#include "tcp.h"
#include "alpha.h"

#define SOL_TCP 6
#define TCP_CONGESTION 13

char _license[] SEC("license") = "GPL";

extern void tcp_reno_cong_avoid(struct sock *sk, __u32 ack, __u32 acked) __ksym;

static __always_inline struct tcp_sock *socket(const unsigned long long *context)
{
	return (struct tcp_sock *)context[0]; /* the verifier takes a struct sock for one here */
}

static __always_inline void begin(struct tcp_sock *tp, struct dctcp *d)
{
	d->alpha = MAX_ALPHA;
	d->rcv_nxt = tp->rcv_nxt;
	d->ce = 0;
	d->cwnd = 0;
	d->acked = tp->delivered;
	d->set = tp->snd_cwnd ? tp->snd_cwnd : LEAST;
	d->ssthresh = 0;
	begin_window(d, tp->snd_nxt, tp->delivered, tp->delivered_ce);
}

/* memory begins if the kernel has left out weft_init: it gives the memory out as zeros. */
static __always_inline struct dctcp *memory(struct tcp_sock *tp)
{
	struct dctcp *d = (struct dctcp *)tp->inet_conn.icsk_ca_priv;

	if (!d->set)
		begin(tp, d);
	return d;
}

SEC("struct_ops")
void weft_init(unsigned long long *context)
{
	struct tcp_sock *tp = socket(context);
	__u8 state = ((struct sock *)context[0])->__sk_common.skc_state;

	if (!(tp->ecn_flags & TCP_ECN_OK) && state != TCP_LISTEN && state != TCP_CLOSE) {
		/* The peer does without ECN: no mark will come. */
		char fallback[] = "cubic";

		if (!bpf_setsockopt((void *)context[0], SOL_TCP, TCP_CONGESTION, fallback, sizeof(fallback)))
			return; /* the memory is that one's now */
		/* An alpha of 1 is Reno. */
	}
	begin(tp, (struct dctcp *)tp->inet_conn.icsk_ca_priv);
}

/* The kernel asks once a window in which a mark or a loss was reported. */
SEC("struct_ops")
__u32 weft_ssthresh(unsigned long long *context)
{
	struct tcp_sock *tp = socket(context);
	struct dctcp *d = memory(tp);

	d->cwnd = believed(d, tp->snd_cwnd);
	return reduced(d->cwnd, d->alpha);
}

SEC("struct_ops")
void weft_in_ack_event(unsigned long long *context)
{
	struct tcp_sock *tp = socket(context);

	acknowledge(memory(tp), tp->snd_una, tp->snd_nxt, tp->delivered, tp->delivered_ce);
}

/* pace says how fast the window leaves, as tcp_update_pacing_rate of the kernel does for
 * congestion controls that leave the window to it. Super-segments are cut by it. */
static __always_inline void pace(struct sock *sk, struct tcp_sock *tp)
{
	__u32 cwnd = tp->snd_cwnd, out = tp->packets_out, srtt = tp->srtt_us;
	__u64 rate = (__u64)tp->mss_cache * (1000000 / 100 * 8);

	rate *= cwnd < tp->snd_ssthresh / 2 ? 200 : 120; /* per cent */
	rate *= cwnd > out ? cwnd : out;
	if (srtt)
		rate /= srtt;
	sk->sk_pacing_rate = rate < sk->sk_max_pacing_rate ? rate : sk->sk_max_pacing_rate;
}

/* The window is set here, and not by the kernel from what weft_ssthresh has returned: a
 * kernel that leaves out the programs for one ACK would make a huge window of that. */
SEC("struct_ops")
void weft_cong_control(unsigned long long *context)
{
	struct sock *sk = (void *)context[0];
	struct tcp_sock *tp = socket(context);
	struct dctcp *d = memory(tp);
	__u8 state = BPF_CORE_READ_BITFIELD(&tp->inet_conn, icsk_ca_state);
	__u32 acked = tp->delivered - d->acked;

	d->acked = tp->delivered;
	tp->snd_cwnd = believed(d, tp->snd_cwnd);
	tp->snd_ssthresh = threshold(d, tp->snd_cwnd, tp->snd_ssthresh, state);
	if (state == TCP_CA_CWR || state == TCP_CA_RECOVERY) {
		if (tp->snd_cwnd > tp->snd_ssthresh)
			tp->snd_cwnd = tp->snd_ssthresh;
	} else if (acked) {
		tcp_reno_cong_avoid(sk, 0, acked); /* which does not use the number of the ACK */
	}
	d->set = tp->snd_cwnd;
	d->ssthresh = tp->snd_ssthresh;
	pace(sk, tp);
}

/* A loss halves the window, whatever alpha is (RFC 8257 §3.4). */
static __always_inline void halve(struct tcp_sock *tp)
{
	struct dctcp *d = memory(tp);

	d->cwnd = believed(d, tp->snd_cwnd);
	tp->snd_ssthresh = reduced(d->cwnd, MAX_ALPHA);
}

SEC("struct_ops")
void weft_set_state(unsigned long long *context)
{
	struct tcp_sock *tp = socket(context);
	__u8 state = context[1];

	if (state == TCP_CA_RECOVERY && BPF_CORE_READ_BITFIELD(&tp->inet_conn, icsk_ca_state) != state)
		halve(tp);
}

static __always_inline void echo(struct tcp_sock *tp, __u32 ce)
{
	if (ce)
		tp->ecn_flags |= TCP_ECN_DEMAND_CWR;
	else
		tp->ecn_flags &= ~TCP_ECN_DEMAND_CWR;
}

/* The receiver's part (RFC 8257 §3.2): an ACK is about packets that are all marked, or all
 * not. When that changes, what a delayed ACK was to say is said first. */
static __always_inline void received(struct tcp_sock *tp, __u32 ce)
{
	struct dctcp *d = memory(tp);

	if (d->ce != ce) {
		if (tp->inet_conn.icsk_ack.pending & ICSK_ACK_TIMER) {
			echo(tp, d->ce);
			bpf_tcp_send_ack(tp, d->rcv_nxt);
		}
		tp->inet_conn.icsk_ack.pending |= ICSK_ACK_NOW;
	}
	d->rcv_nxt = tp->rcv_nxt;
	d->ce = ce;
	echo(tp, ce);
}

SEC("struct_ops")
void weft_cwnd_event(unsigned long long *context)
{
	struct tcp_sock *tp = socket(context);

	switch ((__u32)context[1]) {
	case CA_EVENT_ECN_IS_CE:
		received(tp, 1);
		break;
	case CA_EVENT_ECN_NO_CE:
		received(tp, 0);
		break;
	case CA_EVENT_LOSS:
		halve(tp);
		break;
	}
}

SEC("struct_ops")
__u32 weft_undo_cwnd(unsigned long long *context)
{
	struct tcp_sock *tp = socket(context);
	struct dctcp *d = memory(tp);
	__u32 cwnd = believed(d, tp->snd_cwnd);

	d->set = cwnd > d->cwnd ? cwnd : d->cwnd; /* so that it is believed */
	return d->set;
}

SEC(".struct_ops.link")
struct tcp_congestion_ops weft_dctcp = {
	.init = (void *)weft_init,
	.ssthresh = (void *)weft_ssthresh,
	.in_ack_event = (void *)weft_in_ack_event,
	.cong_control = (void *)weft_cong_control,
	.set_state = (void *)weft_set_state,
	.cwnd_event = (void *)weft_cwnd_event,
	.undo_cwnd = (void *)weft_undo_cwnd,
	.flags = TCP_CONG_NEEDS_ECN,
	.name = "weft_dctcp",
};
