/*
 * The congestion point of quantized congestion notification (IEEE 802.1Qau; thesis §5.3.3).
 * weft/internal/qcn.Congestion says what the fields are and does the same in Go.
 *
 * The caller holds the port's lock, so nothing in qcn_arrive and qcn_sample calls a helper.
 */

#define QCN_ONE 256 /* a weight of 1 */
#define QCN_MAX 63 /* the strongest feedback */

struct qcn {
	__u64 target, unit;
	__u32 weight, min_p, max_p, plateau;
	__u64 old, random;
	__u64 sampled, lost;
};

/* What userspace is told of a packet: fabric.Notice. */
struct notice {
	__u32 port; /* interface index */
	__u32 level;
	__u64 queue; /* bytes that the packet has found */
	struct ipv4 ip; /* the innermost header */
	__u8 l4[8]; /* of TCP: ports and sequence number */
	__u32 pad;
};

/* The loader sets the size. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 65536);
} notices SEC(".maps");

/* has_data says whether a packet carries data of TCP over IPv4. What acknowledges alone is
 * no flow that a sender could slow. */
static __always_inline int has_data(struct __sk_buff *skb, const struct packet *p)
{
	__u32 headers = header_length(&p->ip);
	__u8 offset;

	if (!p->ipv4 || p->protocol != PROTO_TCP || bpf_skb_load_bytes(skb, p->l4 + 12, &offset, sizeof(offset)))
		return 0;
	headers += (offset >> 4) * 4;
	return p->segments > 1 || bpf_ntohs(p->ip.tot_len) > headers;
}

/* qcn_arrive takes note of a packet that finds so many bytes of queue. */
static __always_inline __u32 qcn_arrive(struct qcn *q, __u64 queue)
{
	__s64 over = (__s64)(queue - q->target) * QCN_ONE + (__s64)(queue - q->old) * q->weight;
	__u64 level;

	q->old = queue;
	if (over <= 0)
		return 0;
	level = ((__u64)over + q->unit - 1) / q->unit;
	return level < QCN_MAX ? level : QCN_MAX;
}

/* qcn_sample says whether the sender of a packet is to be told of a level. */
static __always_inline int qcn_sample(struct qcn *q, __u32 level, __u32 segments)
{
	__u64 p = q->max_p, x = q->random;

	if (level < q->plateau)
		p = q->min_p + (p - q->min_p) * level / q->plateau;
	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	q->random = x;
	if (x >> 40 >= p * segments)
		return 0;
	q->sampled++;
	return 1;
}

/* qcn_tell hands a packet's headers to userspace. */
static __always_inline void qcn_tell(struct __sk_buff *skb, struct qcn *q, const struct packet *p, __u32 level, __u64 queue)
{
	struct notice n = {.port = skb->ifindex, .level = level, .queue = queue, .ip = p->ip};

	if (bpf_skb_load_bytes(skb, p->l4, n.l4, sizeof(n.l4)) || bpf_ringbuf_output(&notices, &n, sizeof(n), 0))
		__sync_fetch_and_add(&q->lost, 1);
}
