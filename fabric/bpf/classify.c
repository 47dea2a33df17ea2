// Flow classification at a switch with two-level tables (thesis §3.1.6): what comes from
// below and goes up gets the mark of the port that its flow has, in place of that of its
// destination's host ID. A new flow gets the port that carries least. The agent moves flows,
// forgets idle ones, says what ports carry, and until when to believe it: behind an agent
// that has died packets go by host ID, as tables that nobody keeps would grow stale.
//
// Runs at tc ingress of the ports that lead down, behind the program of host IDs. Where it
// has no port for a flow, the mark of the host ID stays.

#include "packet.h"
#include "inner.h"

/* The order of fabric.ClassifierStats. */
enum { FLOWS, RESCUED, FULL, LATE, NUM_COUNTERS };

#include "count.h"

/* The bits of the mark that are ours, and that which says that there is a group: markMask
 * and suffixBit of package fabric. */
#define MARK_MASK 0x7ff
#define SUFFIX_BIT 0x400

#define MAX_PORTS 64

/* What a source may have of the table: so many new flows at once, and one each GAP ns. With
 * 10 s after which the agent forgets a flow that is 1,012 at a time. */
#define BURST 512
#define GAP 20000000ULL

/* A flow is a source and a destination (thesis §3.4.2). */
struct flow {
	__be32 src, dst;
};

struct state {
	__u32 port;
	__u32 unused;
	__u64 bytes;
};

struct load {
	__u64 bytes; /* since before the agent's last round */
	__u32 dead;
	__u32 unused;
};

struct settings {
	__be32 below, mask; /* the prefix of what does not go up */
	__u32 ports;
	__u32 unused;
	__u64 until; /* ns of the monotonic clock: the agent lives so long at least */
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 65536);
	__type(key, struct flow);
	__type(value, struct state);
} flows SEC(".maps");

/* When what a source has taken of the table is paid for: ns of the monotonic clock. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, __be32);
	__type(value, __u64);
} sources SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MAX_PORTS);
	__type(key, __u32);
	__type(value, struct load);
} loads SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct settings);
} settings SEC(".maps");

/* What least has found so far. In a map the verifier knows nothing of it, and so it need not
 * look at each outcome of each comparison. */
struct found {
	__u64 bytes;
	__u32 port;
	__u32 unused;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct found);
} scratch SEC(".maps");

/* least returns the live port that carries least, MAX_PORTS if none lives. */
__attribute__((noinline)) __u32 least(__u32 ports)
{
	__u32 zero = 0;
	struct found *best = bpf_map_lookup_elem(&scratch, &zero);

	if (!best)
		return MAX_PORTS;
	best->port = MAX_PORTS;
	best->bytes = ~0ULL;
	for (__u32 i = 0; i < MAX_PORTS; i++) {
		__u32 key = i;
		struct load *l;

		if (i >= ports)
			break;
		l = bpf_map_lookup_elem(&loads, &key);
		if (l && !l->dead && l->bytes < *(volatile __u64 *)&best->bytes) {
			best->port = i;
			best->bytes = l->bytes;
		}
	}
	return *(volatile __u32 *)&best->port;
}

/* may says whether a source may have one more flow in the table. */
static __always_inline int may(__be32 source, __u64 now)
{
	__u64 *paid = bpf_map_lookup_elem(&sources, &source), until = now + GAP;

	if (!paid) {
		bpf_map_update_elem(&sources, &source, &until, BPF_ANY);
		return 1;
	}
	if (*paid > now)
		until = *paid + GAP;
	if (until > now + BURST * GAP)
		return 0;
	*paid = until;
	return 1;
}

SEC("tc") int weft_classify(struct __sk_buff *skb)
{
	__u32 zero = 0, port;
	__u64 now = bpf_ktime_get_ns();
	struct settings *set = bpf_map_lookup_elem(&settings, &zero);
	struct state *known, fresh = {};
	struct load *load;
	struct flow flow;
	struct ipv4 *ip;

	if (!set || skb->protocol != bpf_htons(ETH_P_IP) || reach(skb, IP + sizeof(*ip)))
		return TC_ACT_UNSPEC;
	ip = (void *)(long)skb->data + IP;
	if ((void *)(ip + 1) > (void *)(long)skb->data_end)
		return TC_ACT_UNSPEC;
	/* Who encapsulates has chosen a path. */
	if (ip->protocol == PROTO_IPIP || (ip->daddr & set->mask) == set->below)
		return TC_ACT_UNSPEC;
	/* Only what is below has flows here: forged sources would fill the table. */
	if ((ip->saddr & set->mask) != set->below)
		return TC_ACT_UNSPEC;
	if (now > set->until)
		return pass(LATE);
	flow.src = ip->saddr;
	flow.dst = ip->daddr;
	known = bpf_map_lookup_elem(&flows, &flow);
	if (!known) {
		fresh.port = least(set->ports);
		if (fresh.port >= MAX_PORTS)
			return TC_ACT_UNSPEC;
		if (!may(flow.src, now))
			return pass(FULL);
		bpf_map_update_elem(&flows, &flow, &fresh, BPF_NOEXIST);
		known = bpf_map_lookup_elem(&flows, &flow); /* another CPU may have been faster */
		if (!known)
			return pass(FULL);
		count(FLOWS, 1);
	}
	port = known->port;
	load = bpf_map_lookup_elem(&loads, &port);
	if (!load)
		return TC_ACT_UNSPEC;
	if (load->dead) {
		port = least(set->ports);
		if (port >= MAX_PORTS)
			return TC_ACT_UNSPEC;
		known->port = port;
		load = bpf_map_lookup_elem(&loads, &port);
		if (!load)
			return TC_ACT_UNSPEC;
		count(RESCUED, 1);
	}
	__sync_fetch_and_add(&known->bytes, skb->len);
	__sync_fetch_and_add(&load->bytes, skb->len);
	skb->mark = (skb->mark & ~MARK_MASK) | SUFFIX_BIT | port;
	return TC_ACT_UNSPEC;
}

char _license[] SEC("license") = "GPL";
