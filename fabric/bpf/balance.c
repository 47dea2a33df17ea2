// Balances what hosts send that know nothing of weft: weft/internal/balance, whose Chooser
// decides in the same way.
//
// weft_balance runs at tc ingress of a switch's ports. It gives a packet the hash by which
// the kernel's multipath route then chooses the next hop
// (net.ipv4.fib_multipath_hash_policy=1, and the same of net.ipv6). So routes, neighbours,
// TTL, dead next hops and weights stay the kernel's. From a packet that it leaves to the
// routes it takes the hash of the sender's socket or of the device, which is the same at each
// switch. So the kernel hashes the five-tuple, with the switch's own seed as of Linux 6.11.
//
// A flow that a scheduler has pinned to a port gets the hash of that port, whatever the rule is
// (elephant.h). Under ecmp there is no more to it: others keep the kernel's hash.
//
// weft_queue runs at tc egress of the same ports. It fills their virtual queues, and takes
// the hash away again: the next switch, a receiver's GRO and queues must not see it.

#include "packet.h"

#define MAX_STEPS 128
#define MAX_SETS 256 /* the first is that of destinations with one way, or without room, and empty */
#define PAIRS 65536
#define FLOWLETS 65536
#define MAX_SAMPLES 4
#define MAX_MEMORY 2
#define MAX_GROUPS 8

enum { CHOSEN, PLAIN, BEGUN, EVICTED, COUNTED, PINNED, UNPINNED, NUM_COUNTERS };

#include "count.h"
#include "elephant.h"

/* balance.Kind */
enum { ROUTES, ECMP, RB, RRB, DRB, LETFLOW, DRILL };

const volatile __u32 rule, samples, memory;
const volatile __u64 gap, seed;

#include "who.h"

struct step {
	__u32 port;
	__u32 hash;
	__u8 first, count, group; /* where the group's steps are; its number */
	__u8 unused;
};

struct set {
	__u32 n;
	__u32 groups;
	struct step steps[MAX_STEPS];
};

struct engine {
	__u64 random;
	__u32 turn;
	__u32 remembered;
	__u32 least[MAX_MEMORY];
};

struct flowlet {
	__u32 flow;
	__u32 hash;
	__u64 last;
};

/* A port: fabric.balanceQueue. */
struct queue {
	struct bpf_spin_lock lock;
	__u32 unused;
	__u64 byte; /* ns that a byte takes, in 2^-16 */
	__u64 room; /* ns that a full queue takes */
	__u64 empty; /* ns of the monotonic clock: when all will have left */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MAX_SETS);
	__type(key, __u32);
	__type(value, struct set);
} sets SEC(".maps");

/* By interface index. The loader puts in the ports. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, __u32);
	__type(value, struct queue);
} queues SEC(".maps");

/* By number of set, and MAX_SETS times that of DRILL's group. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, MAX_SETS * MAX_GROUPS);
	__type(key, __u32);
	__type(value, struct engine);
} engines SEC(".maps");

/* Turns of pairs of hosts, by the pair's hash. The loader makes room for one where the rule
 * does not need them. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, PAIRS);
	__type(key, __u32);
	__type(value, __u32);
} pairs SEC(".maps");

/* By the flow's hash; the same. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, FLOWLETS);
	__type(key, __u32);
	__type(value, struct flowlet);
} flowlets SEC(".maps");

static __always_inline __u32 next_random(struct engine *e)
{
	__u64 x = e->random;

	if (!x) /* the first on this CPU */
		x = (__u64)bpf_get_prandom_u32() << 32 | bpf_get_prandom_u32() | 1;
	x ^= x >> 12;
	x ^= x << 25;
	x ^= x >> 27;
	e->random = x;
	return x * 0x2545f4914f6cdd1d >> 32;
}

/* below is a random number below n. */
static __always_inline __u32 below(struct engine *e, __u32 n)
{
	return (__u64)next_random(e) * n >> 32;
}

static __always_inline __u32 turn_of(__u64 pair, __u32 n)
{
	__u32 place = (__u32)pair % PAIRS;
	__u32 *turn = bpf_map_lookup_elem(&pairs, &place);

	if (!turn) /* never; the verifier, without CAP_PERFMON, takes no constant here */
		return (__u32)pair % n;
	return ((__u32)(pair >> 32) + __sync_fetch_and_add(turn, 1)) % n;
}

/* flowlet_of returns the hash of the packet's flowlet. Two CPUs that write a place at the
 * same time may begin a flowlet more. */
static __always_inline __u32 flowlet_of(__u64 flow, struct engine *e)
{
	__u32 place = (__u32)flow % FLOWLETS, who = flow >> 32;
	struct flowlet *f = bpf_map_lookup_elem(&flowlets, &place);
	__u64 now = bpf_ktime_get_ns();
	int lives;

	if (!f)
		return who;
	lives = f->last && now - f->last <= gap;
	if (f->flow != who || !lives) {
		count(BEGUN, 1);
		if (lives)
			count(EVICTED, 1);
		f->flow = who;
		f->hash = next_random(e);
	}
	f->last = now;
	return f->hash;
}

/* The best of the steps added, the best first. */
struct least {
	__u32 n;
	__u32 step[MAX_MEMORY];
	__u64 wait[MAX_MEMORY];
};

static __always_inline __u64 wait_at(__u32 port, __u64 now)
{
	struct queue *q = bpf_map_lookup_elem(&queues, &port);

	return q && q->empty > now ? q->empty - now : 0;
}

static __always_inline void add(struct least *l, const struct set *s, __u32 step, __u64 now)
{
	__u64 wait;

	if ((l->n > 0 && l->step[0] == step) || (l->n > 1 && l->step[1] == step))
		return;
	wait = wait_at(s->steps[step & (MAX_STEPS - 1)].port, now);
	if (!l->n || wait < l->wait[0]) {
		l->step[1] = l->step[0], l->wait[1] = l->wait[0];
		l->step[0] = step, l->wait[0] = wait;
	} else if (l->n == 1 || wait < l->wait[1]) {
		l->step[1] = step, l->wait[1] = wait;
	}
	if (!l->n || (l->n == 1 && memory > 1))
		l->n++;
}

/* least_of chooses a step of a group. */
static __always_inline __u32 least_of(const struct set *s, const struct step *group, struct engine *e)
{
	__u32 first = group->first, count = group->count;
	__u64 now = bpf_ktime_get_ns();
	struct least l = {};

#pragma unroll
	for (int i = 0; i < MAX_SAMPLES; i++) {
		if (i < samples)
			add(&l, s, first + below(e, count), now);
	}
#pragma unroll
	for (int k = 0; k < MAX_MEMORY; k++) {
		if (k < e->remembered && e->least[k] >= first && e->least[k] < first + count)
			add(&l, s, e->least[k], now);
	}
	e->remembered = l.n < memory ? l.n : memory;
#pragma unroll
	for (int k = 0; k < MAX_MEMORY; k++) {
		if (k < e->remembered)
			e->least[k] = l.step[k];
	}
	return l.step[0];
}

/* five_tuple_of reads whose a packet is, and returns the bytes of its IP header; 0 for what is
 * not TCP or UDP in one piece, right behind that header. */
static __always_inline __u32 five_tuple_of(struct __sk_buff *skb, struct five_tuple *key)
{
	__u32 header = sizeof(struct ipv6);
	struct ipv4 ip;
	struct ipv6 ip6;

	if (skb->protocol == bpf_htons(ETH_P_IP)) {
		if (bpf_skb_load_bytes(skb, IP, &ip, sizeof(ip)) || ip.frag_off & FRAGMENT)
			return 0;
		header = header_length(&ip);
		if (header < sizeof(ip))
			return 0;
		map_ipv4(key->saddr, ip.saddr);
		map_ipv4(key->daddr, ip.daddr);
		key->protocol = ip.protocol;
	} else {
		if (bpf_skb_load_bytes(skb, IP, &ip6, sizeof(ip6)))
			return 0;
		__builtin_memcpy(key->saddr, ip6.saddr, sizeof(key->saddr));
		__builtin_memcpy(key->daddr, ip6.daddr, sizeof(key->daddr));
		key->protocol = ip6.next;
	}
	if ((key->protocol != PROTO_TCP && key->protocol != PROTO_UDP) ||
	    bpf_skb_load_bytes(skb, IP + header, &key->ports, sizeof(key->ports)))
		return 0;
	return header;
}

/* on_wire is how many bytes the frames have that a packet is cut into. Super-segments from
 * userspace do not say how many these are. */
static __always_inline __u64 on_wire(struct __sk_buff *skb, __u32 header, __u32 protocol)
{
	__u32 each = IP + header + 8, segments = skb->gso_segs;
	__u8 offset;

	if (!skb->gso_size)
		return skb->len;
	if (protocol == PROTO_TCP && !bpf_skb_load_bytes(skb, IP + header + 12, &offset, sizeof(offset)))
		each = IP + header + (offset >> 4) * 4;
	if (!segments && skb->len > each)
		segments = (skb->len - each + skb->gso_size - 1) / skb->gso_size;
	return segments ? skb->len + (__u64)(segments - 1) * each : skb->len;
}

/* pinned counts a packet's flow, and reports whether it goes where a scheduler has pinned it:
 * to a port that is a next hop of its route. The loader says which step of the route's set that
 * is; where sets have changed since, the step has another port. The verifier looks at it
 * alone, so it does not multiply what the rules do. */
__attribute__((noinline)) int pinned(struct __sk_buff *skb, __u32 number)
{
	struct five_tuple key = {};
	__u32 header = five_tuple_of(skb, &key), step;
	struct set *s;
	struct pin *p;

	if (!header)
		return 0;
	if (elephants == PINS_AND_COUNTS)
		count_flow(&key, on_wire(skb, header, key.protocol));
	p = pin_of(&key);
	if (!p)
		return 0;
	s = bpf_map_lookup_elem(&sets, &number);
	step = p->among & (MAX_STEPS - 1);
	if (!s || s->steps[step].port != p->way) {
		count(UNPINNED, 1);
		return 0;
	}
	bpf_set_hash(skb, s->steps[step].hash);
	count(PINNED, 1);
	return 1;
}

/* plain leaves an IP packet to the kernel's routes. */
static __always_inline int plain(struct __sk_buff *skb)
{
	bpf_set_hash_invalid(skb);
	return pass(PLAIN);
}

SEC("tc") int weft_balance(struct __sk_buff *skb)
{
	struct who who = {};
	struct engine *e;
	struct set *s;
	struct step *group;
	__u32 number, engine, step;

	if (skb->protocol != bpf_htons(ETH_P_IP) && skb->protocol != bpf_htons(ETH_P_IPV6))
		return pass(PLAIN);
	/* A mark may mean another table: that of a virtual spine, or an administrator's. What
	 * has a VLAN's tag, or another device's address, is not for this port's routes. */
	if (skb->mark || skb->vlan_present || skb->pkt_type != PACKET_HOST)
		return plain(skb);
	number = skb->protocol == bpf_htons(ETH_P_IP) ? set_of4(skb, &who) : set_of6(skb, &who);
	if (number == NO_SET) /* here the verifier, without CAP_PERFMON, knows no flow of 0 */
		return plain(skb);
	s = bpf_map_lookup_elem(&sets, &number);
	if (!s || !s->n)
		return plain(skb);
	if (elephants && pinned(skb, number))
		return TC_ACT_UNSPEC;
	if (rule == ECMP)
		return plain(skb);
	engine = number;
	group = &s->steps[0];
	if (rule == DRILL) {
		/* The flow's hash falls on a step, and so on a group by its weight. */
		group = &s->steps[((who.flow >> 32) * s->n >> 32) & (MAX_STEPS - 1)];
		engine += MAX_SETS * (group->group & (MAX_GROUPS - 1));
	}
	e = bpf_map_lookup_elem(&engines, &engine);
	if (!e)
		return plain(skb);
	switch (rule) {
	case RB:
		step = below(e, s->n);
		break;
	case RRB:
		step = e->turn++ % s->n;
		break;
	case DRB:
		step = turn_of(who.pair, s->n);
		break;
	case LETFLOW:
		bpf_set_hash(skb, flowlet_of(who.flow, e));
		return pass(CHOSEN);
	default:
		step = least_of(s, group, e);
	}
	bpf_set_hash(skb, s->steps[step & (MAX_STEPS - 1)].hash);
	return pass(CHOSEN);
}

SEC("tc") int weft_queue(struct __sk_buff *skb)
{
	__u32 port = skb->ifindex;
	struct queue *q = rule == DRILL ? bpf_map_lookup_elem(&queues, &port) : NULL;

	if (q) {
		__u64 now = bpf_ktime_get_ns(), takes = skb->wire_len * q->byte >> 16, empty;

		bpf_spin_lock(&q->lock);
		empty = (q->empty > now ? q->empty : now) + takes;
		/* What the real queue drops does not wait. */
		q->empty = empty < now + q->room ? empty : now + q->room;
		bpf_spin_unlock(&q->lock);
	}
	if (skb->ingress_ifindex) /* else the hash is the socket's */
		bpf_set_hash_invalid(skb);
	return TC_ACT_UNSPEC;
}

char _license[] SEC("license") = "GPL";
