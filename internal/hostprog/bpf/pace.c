/*
 * Paces connections of the kernel's TCP (QCN's reaction points; weft/internal/qcn). An
 * iterator over the sockets of a network namespace: each time that somebody reads it, it
 * gives the connections that are in the map their rates, and says how they are.
 *
 * TCP paces by a timer of its own once a socket has a highest rate (SO_MAX_PACING_RATE), so
 * no queueing discipline is needed (fq).
 */

#include <linux/bpf.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_endian.h>

#define SOL_SOCKET 1
#define SO_MAX_PACING_RATE 47
#define UNLIMITED 0xffffffffU

/* What is read of the kernel's own types; the loader finds where each field is. */
#define KERNELS __attribute__((preserve_access_index))

struct sock_common {
	__be32 skc_daddr;
	__be32 skc_rcv_saddr;
	__be16 skc_dport;
	__u16 skc_num;
} KERNELS;

struct sock {
	unsigned long sk_max_pacing_rate;
} KERNELS;

struct inet_sock {
	struct sock sk;
} KERNELS;

struct inet_connection_sock {
	struct inet_sock icsk_inet;
} KERNELS;

struct tcp_sock {
	struct inet_connection_sock inet_conn;
	__u32 snd_una;
	__u32 snd_nxt;
	__u64 bytes_sent;
	__u32 rate_delivered;
	__u32 rate_interval_us;
	__u32 mss_cache;
	__u32 srtt_us; /* eight times that */
	__u32 snd_cwnd;
	__u8 rate_app_limited : 1;
} KERNELS;

struct bpf_iter__tcp {
	struct bpf_iter_meta *meta;
	struct sock_common *sk_common;
	__u32 uid;
} KERNELS;

struct flow {
	__be32 local, remote;
	__be16 local_port, remote_port;
};

/* hostprog.pacedFlow says what each is. */
struct pace {
	__u32 rate, end;
	__u32 una, nxt;
	__u64 own, last, sent, rated, reading;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1); /* the loader says how many: hostprog.MaxPaced */
	__type(key, struct flow);
	__type(value, struct pace);
} paced SEC(".maps");

volatile struct {
	__u64 number; /* the reader's */
	__u32 sweep; /* sockets are to lose rates that a former run has left them */
} reading;

/* Rates that weft gives are odd, and their last bits are these: others' are hardly ever. */
#define OURS 0x3a7
#define OURS_MASK 0x3ff

static __always_inline int set_rate(struct tcp_sock *tp, __u32 rate)
{
	return bpf_setsockopt(tp, SOL_SOCKET, SO_MAX_PACING_RATE, &rate, sizeof(rate));
}

/*
 * The rate of a connection in bytes a second, 0 if it is not known. What was measured while the
 * program had little to send says nothing: then it is what the window allows, if that is more.
 */
static __always_inline __u64 rate_of(struct tcp_sock *tp)
{
	__u64 delivered = 0, allowed = 0;

	if (tp->rate_interval_us)
		delivered = (__u64)tp->rate_delivered * tp->mss_cache * 1000000 / tp->rate_interval_us;
	if (delivered && !BPF_CORE_READ_BITFIELD(tp, rate_app_limited))
		return delivered;
	if (tp->srtt_us)
		allowed = (__u64)tp->snd_cwnd * tp->mss_cache * 8000000 / tp->srtt_us;
	return allowed > delivered ? allowed : delivered;
}

SEC("iter/tcp") int weft_pace(struct bpf_iter__tcp *ctx)
{
	struct sock_common *sk = ctx->sk_common;
	struct tcp_sock *tp;
	struct pace *p;
	struct flow key;
	__u64 highest;
	__u32 rate;

	if (!sk)
		return 0;
	key.local = sk->skc_rcv_saddr;
	key.remote = sk->skc_daddr;
	key.local_port = bpf_htons(sk->skc_num);
	key.remote_port = sk->skc_dport;
	p = bpf_map_lookup_elem(&paced, &key);
	if (!p && !reading.sweep)
		return 0;
	tp = bpf_skc_to_tcp_sock(sk);
	if (!tp)
		return 0;
	highest = tp->inet_conn.icsk_inet.sk.sk_max_pacing_rate;
	if (!p) {
		if (highest < UNLIMITED && (highest & OURS_MASK) == OURS)
			set_rate(tp, UNLIMITED);
		return 0;
	}
	if (!p->reading || highest != p->last)
		p->own = highest; /* the program has set it */
	p->last = highest;
	p->una = tp->snd_una;
	p->nxt = tp->snd_nxt;
	p->sent = tp->bytes_sent;
	p->rated = rate_of(tp);
	p->reading = reading.number;
	if (!p->rate && !p->end)
		return 0;
	rate = p->own < UNLIMITED ? p->own : UNLIMITED;
	if (!p->end && p->rate < rate)
		rate = ((p->rate - OURS) & ~OURS_MASK) | OURS;
	if (highest != rate && !(rate == UNLIMITED && highest > UNLIMITED))
		set_rate(tp, rate);
	p->last = tp->inet_conn.icsk_inet.sk.sk_max_pacing_rate;
	return 0;
}

char _license[] SEC("license") = "GPL";
