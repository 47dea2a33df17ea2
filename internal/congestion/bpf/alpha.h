/* DCTCP's arithmetic (RFC 8257 §3.3), as Linux's tcp_dctcp.c has it. Shares are parts of
 * MAX_ALPHA. Sequence numbers and counters wrap. */

#define MAX_ALPHA 1024
#define GAIN_SHIFT 4 /* g = 1/16 (RFC 8257 §4.2) */

/* What a socket knows of its window of data. */
struct dctcp {
	__u32 alpha; /* the estimated share of marked packets */
	__u32 end; /* snd_nxt when the window began: it ends when this is acknowledged */
	__u32 delivered; /* the kernel's counters of packets by then */
	__u32 delivered_ce;
	__u32 rcv_nxt; /* at the last packet received */
	__u32 ce; /* that packet's mark */
	__u32 cwnd; /* before the latest reduction */
	__u32 acked; /* the kernel's counter of packets when the window was last set */
	__u32 set; /* the window by then, or as an undo has made it; 0: not begun */
	__u32 ssthresh; /* the threshold when the window was last set; 0: never */
};

#define INFINITE 0x7fffffff /* TCP_INFINITE_SSTHRESH */
#define MOST (1 << 25) /* packets: more than the largest window, of 1 GB, has */
#define LEAST 2 /* packets: no threshold is below it */

enum { TCP_CA_CWR = 2, TCP_CA_RECOVERY, TCP_CA_LOSS }; /* enum tcp_ca_state */

static __always_inline void begin_window(struct dctcp *d, __u32 nxt, __u32 delivered, __u32 delivered_ce)
{
	d->end = nxt;
	d->delivered = delivered;
	d->delivered_ce = delivered_ce;
}

/* next_alpha is (1-g) alpha + g F, where F is the share of marked packets. The smallest
 * alphas go to 0. */
static __always_inline __u32 next_alpha(__u32 alpha, __u32 delivered, __u32 marked)
{
	__u32 less = alpha >> GAIN_SHIFT;

	alpha -= less ? less : alpha;
	if (marked) {
		if (marked > delivered) /* no share is above 1 */
			marked = delivered;
		alpha += (__u64)marked * (MAX_ALPHA >> GAIN_SHIFT) / (delivered ? delivered : 1);
	}
	return alpha < MAX_ALPHA ? alpha : MAX_ALPHA;
}

/* acknowledge takes note of an ACK up to una. Once a window it changes alpha. */
static __always_inline void acknowledge(struct dctcp *d, __u32 una, __u32 nxt, __u32 delivered, __u32 delivered_ce)
{
	if ((__s32)(una - d->end) < 0)
		return;
	d->alpha = next_alpha(d->alpha, delivered - d->delivered, delivered_ce - d->delivered_ce);
	begin_window(d, nxt, delivered, delivered_ce);
}

/* reduced is cwnd (1 - alpha/2), at least LEAST. */
static __always_inline __u32 reduced(__u32 cwnd, __u32 alpha)
{
	__u32 less = (__u64)cwnd * alpha / (2 * MAX_ALPHA);

	return cwnd - less > LEAST ? cwnd - less : LEAST;
}

/* A kernel may leave a program out, and what the program was to return is then anything: the
 * window after an undo, or the threshold of a reduction. The functions below take only what
 * the programs or the kernel itself can have come to.
 *
 * believed is the window. The programs note in set whatever raises it, and the kernel by
 * itself only lowers it. It is never 0, by which the kernel would divide. */
static __always_inline __u32 believed(const struct dctcp *d, __u32 cwnd)
{
	if (!cwnd || cwnd > d->set)
		cwnd = d->set;
	return cwnd ? cwnd : LEAST;
}

/* impossible reports whether a threshold is, in a state of enum tcp_ca_state. A new one of a
 * reduction is not above the window. An undo may bring back any earlier one. */
static __always_inline int impossible(const struct dctcp *d, __u32 ssthresh, __u32 state)
{
	if (ssthresh < LEAST)
		return 1;
	if (ssthresh == d->ssthresh)
		return 0;
	if (state >= TCP_CA_CWR)
		return ssthresh > LEAST && ssthresh > d->set;
	return ssthresh > MOST && ssthresh != INFINITE;
}

/* threshold is what a reduction of this window should have come to, if ssthresh is not
 * possible. A loss halves (RFC 8257 §3.4). */
static __always_inline __u32 threshold(struct dctcp *d, __u32 cwnd, __u32 ssthresh, __u32 state)
{
	if (!impossible(d, ssthresh, state))
		return ssthresh;
	d->cwnd = cwnd;
	return reduced(cwnd, state > TCP_CA_CWR ? MAX_ALPHA : d->alpha);
}
