// The meter of a switch's port: a virtual queue (thesis §5.2.1), a leaky bucket
// that is filled by what leaves the port and drained at the link's rate. What it
// finds it
//
//   adds to probes of a path's congestion (Luopan §3.1; weft/encap.Sample),
//   marks CE above a threshold, on the outermost header, or marks and drops by the
//   average (RED, thesis §5.3.1),
//   writes into CONGA's marks, its estimate of the load (§3.2; weft/conga.Mark),
//   keeps for whoever reads the map,
//   tells to the user's extensions (weft_extension.h).
//
// Runs at tc egress of Ethernet ports, after decapsulation and routing and
// before the port's own queue. Headers are read and written by helpers alone:
// they may sit in page fragments, and what TCP sends is cloned.

#include "packet.h"
#include "ipv6.h"
#include "dre.h"
#include "mark.h"
#include "metered.h"
#include "red.h"
#include "qcn.h"
#include "weft_extension.h"

#define SAMPLE_PORT bpf_htons(9337)
#define SAMPLE_MAGIC bpf_htonl(0x77666c73)
#define SAMPLE_ACK bpf_htonl(0x80)
#define SAMPLE_UDP 40 /* bytes of header and payload */
#define MAX_QCM 127

#define CONTROL 0xc0 /* from this traffic class on: network control, DSCP 48 to 63 */
#define SECOND 1000000000ULL

/* A port: fabric.meterState, which says what each is. */
struct meter {
	struct bpf_spin_lock lock;
	__u32 unit;
	__u64 rate, burst, room, full, ecn, tick, target;
	__u64 last, remainder, length, ticked, reg;
	__u64 max, packets, bytes, marks, samples, raised, overflow;
	struct red red;
	struct qcn qcn;
};

/* By interface index. The loader sets the size and puts in the ports; packets
 * add none. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, __u32);
	__type(value, struct meter);
} meters SEC(".maps");

/* What the meter finds. */
struct found {
	__u64 length;
	__u64 average; /* bytes */
	__u32 metric;
	__u32 level; /* of congestion that the sender is to be told of; 0: it is not */
	int mark, drop;
};

static __always_inline __u64 drained(struct meter *m, __u64 now)
{
	__u64 elapsed = now - m->last, drained;

	if ((__s64)elapsed <= 0)
		return m->length;
	m->last = now;
	if (!m->length || elapsed >= m->full) {
		m->remainder = 0;
		return 0;
	}
	drained = elapsed * m->rate + m->remainder;
	if (drained / SECOND >= m->length) {
		m->remainder = 0;
		return 0;
	}
	m->remainder = drained % SECOND;
	return m->length - drained / SECOND;
}

static __always_inline __u64 decayed(struct meter *m, __u64 tick)
{
	__u64 ticks = tick - m->ticked;

	if ((__s64)ticks <= 0)
		return m->reg;
	m->ticked = tick;
	return dre_decayed(m->reg, ticks);
}

/* idle is for how many ns the queue has been empty. */
static __always_inline __u64 idle(const struct meter *m, __u64 now)
{
	__u64 queued = m->length > m->burst ? m->length - m->burst : 0;
	__u64 elapsed = now - m->last, busy = queued * SECOND / m->rate;

	return (__s64)elapsed <= 0 || elapsed <= busy ? 0 : elapsed - busy;
}

/* early has RED decide on a packet. What is dropped does not enter the queue. Network
 * control, ARP and IPv6's neighbour discovery keep the network itself going. */
static __always_inline void early(struct meter *m, const struct packet *p, struct found *f)
{
	enum red_choice choice;

	red_look(&m->red, f->length);
	if (p->class >= CONTROL || p->discovery)
		return;
	choice = red_choose(&m->red);
	if (choice == RED_EARLY && m->red.mark && p->ecn) {
		f->mark = 1;
	} else if (choice != RED_PASS) {
		f->drop = 1;
		if (choice == RED_EARLY)
			m->red.early += p->segments;
		else
			m->red.forced += p->segments;
	}
}

/* enter puts a packet into the queue, as far as there is room: what the real one
 * drops does not wait. */
static __always_inline void enter(struct __sk_buff *skb, struct meter *m, const struct packet *p, struct found *f)
{
	__u64 now = bpf_ktime_get_ns(), tick = now / m->tick, room, fits, x;
	int data = m->qcn.target && has_data(skb, p);
	__u32 one = p->segments > 1 ? p->wire / p->segments + 1 : p->wire;

	bpf_spin_lock(&m->lock);
	if (m->red.weight)
		red_rest(&m->red, idle(m, now));
	m->length = drained(m, now);
	f->length = m->length > m->burst ? m->length - m->burst : 0;
	f->mark = f->length > m->ecn;
	if (m->red.weight) {
		early(m, p, f);
		f->average = m->red.average >> RED_FRACTION;
		if (f->drop) {
			bpf_spin_unlock(&m->lock);
			return;
		}
	}
	if (m->qcn.target) {
		f->level = qcn_arrive(&m->qcn, f->length);
		if (f->level && !(data && qcn_sample(&m->qcn, f->level, p->segments)))
			f->level = 0;
	}
	room = m->room - m->length;
	fits = p->wire;
	if (fits > room) {
		fits = p->segments > 1 ? room / one : 0;
		m->overflow += p->segments - fits;
		fits *= one;
	}
	m->length += fits;
	if (m->length > m->burst && m->length - m->burst > m->max)
		m->max = m->length - m->burst;
	x = decayed(m, tick) + fits * DRE_SCALE;
	if (x > DRE_MOST)
		x = DRE_MOST;
	m->reg = x;
	m->packets += p->segments;
	m->bytes += p->wire;
	bpf_spin_unlock(&m->lock);
	f->metric = dre_level(x, m->target);
}

/* add writes the queue into a probe: encap.AddQueue. */
static __always_inline int add(struct __sk_buff *skb, const struct packet *p, __u64 units)
{
	struct {
		__be16 source, dest, length;
		__sum16 check;
		__be32 magic, word, meters;
	} old;
	__be32 new[2];
	__sum16 check;
	__u8 *b = (__u8 *)new;

	if (p->ip.version_ihl != 0x45 || p->ip.tot_len != bpf_htons(sizeof(p->ip) + SAMPLE_UDP) ||
	    skb->len < p->l4 + SAMPLE_UDP || bpf_skb_load_bytes(skb, p->l4, &old, sizeof(old)))
		return 0;
	if (old.source != SAMPLE_PORT || old.dest != SAMPLE_PORT || old.magic != SAMPLE_MAGIC || old.word & SAMPLE_ACK)
		return 0;
	new[0] = old.word;
	new[1] = old.meters;
	units += b[3]; /* its top bit is the type, 0 */
	b[3] = units < MAX_QCM ? units : MAX_QCM;
	if (b[5] < 255)
		b[5]++;
	/* Where there is no checksum there is to be none; 0 of it is 0xffff. The kernel's helper
	 * would leave it alone in a packet whose checksum a device is to complete, as it believes
	 * of the copy of which a leaf switch has made a sample (leaf.c). */
	if (old.check) {
		check = ~fold(bpf_csum_diff(&old.word, sizeof(new), new, sizeof(new), (__u16)~old.check));
		if (!check)
			check = 0xffff;
		if (bpf_skb_store_bytes(skb, p->l4 + 6, &check, sizeof(check), 0))
			return 0;
	}
	return !bpf_skb_store_bytes(skb, p->l4 + 12, new, sizeof(new), 0);
}

/* raise writes the load into a forward mark of CONGA's: conga.Raise. */
static __always_inline int raise(struct __sk_buff *skb, const struct packet *p, __u32 metric)
{
	__u16 id = bpf_ntohs(p->ip.id);
	__be16 new;

	if (p->ip.tos >> 2 != MARK_DSCP || !(p->ip.frag_off & DONT_FRAGMENT) || id & MARK_FEEDBACK ||
	    (id & MARK_METRIC) >> MARK_SHIFT >= metric)
		return 0;
	new = bpf_htons((id & ~MARK_METRIC) | metric << MARK_SHIFT);
	if (bpf_l3_csum_replace(skb, p->ipv4 + offsetof(struct ipv4, check), p->ip.id, new, sizeof(new)))
		return 0;
	return !bpf_skb_store_bytes(skb, p->ipv4 + offsetof(struct ipv4, id), &new, sizeof(new), 0);
}

/*
 * set_ce marks the outermost header; its sender's decapsulator moves the mark
 * inwards (RFC 6040). The kernel's own helper for it gives up on what a packet
 * socket has seen, too.
 */
static __always_inline int set_ce(struct __sk_buff *skb)
{
	__be16 old, new;

	/* Version and what follows: of IPv4 the TOS, of IPv6 half of the class. */
	if (bpf_skb_load_bytes(skb, IP, &old, sizeof(old)))
		return 0;
	if (skb->protocol == bpf_htons(ETH_P_IPV6))
		return new = old | bpf_htons(CE << 4), !bpf_skb_store_bytes(skb, IP, &new, sizeof(new), 0);
	new = old | bpf_htons(CE);
	if (bpf_l3_csum_replace(skb, IP + offsetof(struct ipv4, check), old, new, sizeof(new)))
		return 0;
	return !bpf_skb_store_bytes(skb, IP, &new, sizeof(new), 0);
}

SEC("tc") int weft_meter(struct __sk_buff *skb)
{
	__u32 index = skb->ifindex;
	struct meter *m = bpf_map_lookup_elem(&meters, &index);
	struct packet p = {};
	struct found f = {};

	if (!m)
		return TC_ACT_UNSPEC;
	parse(skb, &p);
	weigh(skb, &p);
	enter(skb, m, &p, &f);
	if (f.drop)
		return TC_ACT_SHOT;
	if (p.ipv4 && p.protocol == PROTO_UDP) {
		if (add(skb, &p, (f.length + m->unit - 1) / m->unit))
			__sync_fetch_and_add(&m->samples, 1);
	} else if (p.ipv4 && p.protocol == PROTO_TCP) {
		if (raise(skb, &p, f.metric))
			__sync_fetch_and_add(&m->raised, 1);
	}
	if (f.mark && p.ecn && p.ecn != CE && set_ce(skb))
		__sync_fetch_and_add(&m->marks, 1);
	if (f.level)
		qcn_tell(skb, &m->qcn, &p, f.level, f.length);
	skb->cb[WEFT_QUEUE] = f.length;
	skb->cb[WEFT_AVERAGE] = f.average;
	skb->cb[WEFT_RATE] = m->rate / (1000 / 8);
	skb->cb[WEFT_MARKED] = f.mark;
	skb->cb[WEFT_NUMBER] = 0;
	bpf_tail_call(skb, &weft_extensions, 0);
	return TC_ACT_UNSPEC;
}

char _license[] SEC("license") = "GPL";
