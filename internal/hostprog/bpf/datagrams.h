/*
 * Numbers the datagrams that the configuration has sprayed, so that a receiver of weft's can
 * restore their order (order.c). Behind cutter.h.
 *
 * The number is in the inner IPv4 ID, which is all that survives the switch that takes the
 * outer header off, and all of the packet that is the sender's to use: with DF set nobody
 * reads the ID (RFC 6864 §4.1). A number has the place of the datagram in its flow in the low
 * bits, since a device that cuts a UDP_SEGMENT super-packet counts up there. The high bits
 * are the track: the step of the order by which the datagram goes. What goes by one track keeps
 * its order, so the receiver knows what is lost once all tracks have passed it.
 */

#include "tracks.h"
#include "listed.h"

struct datagrams {
	__u32 next; /* number of the next datagram */
	__u32 step; /* of the order */
	__u32 bytes; /* that this step has had */
	__u32 longest; /* of what a step has */
};

/* If nothing is sprayed, the loader makes room for one. A flow that is forgotten begins again
 * at a random number, and the receiver finds that out. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 65536);
	__type(key, struct flow_key);
	__type(value, struct datagrams);
} datagram_flows SEC(".maps");

/*
 * is_datagram reports whether a packet is one of these datagrams, and reads its ports. The
 * kernel sets DF on datagrams that fit into the MTU, but not on super-packets, which do not
 * fit as a whole.
 */
static __always_inline int is_datagram(struct __sk_buff *skb, struct inner *in, __be32 *ports)
{
	if (!listing || in->six || in->protocol != PROTO_UDP || in->v4.version_ihl != 0x45 ||
	    in->v4.frag_off & FRAGMENT || in->length < sizeof(struct ipv4) + 8)
		return 0;
	if (!(in->v4.frag_off & DONT_FRAGMENT) && !skb->gso_size)
		return 0;
	return !bpf_skb_load_bytes(skb, IP + sizeof(struct ipv4), ports, sizeof(*ports)) &&
	       is_listed(in->v4.daddr, *ports);
}

static __always_inline void forbid_fragments(struct ipv4 *ip)
{
	__be16 with = ip->frag_off | DONT_FRAGMENT;

	ip->check = ~fold((__u16)~ip->check + (__u32)(__u16)~ip->frag_off + with);
	ip->frag_off = with;
}

/*
 * datagram numbers a datagram, or the datagrams of a super-packet, and returns its step. Each
 * step gets as many bytes: a step is left once it has had as much as the longest packet has.
 * So packets of one size all take the next step, and short ones share one. Otherwise long and
 * short ones in turns would load some paths more than others. The longest is forgotten
 * little by little. Programs may send from several processors at once: then they share the
 * step at worst, but no number. It is a function of its own for the same reason as draw.
 */
static __noinline __u32 datagram(struct inner *in, __be32 ports, const struct group *g, __u32 segments)
{
	struct flow_key key = flow_of(in, ports);
	struct datagrams *f = bpf_map_lookup_elem(&datagram_flows, &key);
	__u32 step, track, longest, bytes;

	if (!f) {
		struct datagrams first = { .next = bpf_get_prandom_u32() };

		bpf_map_update_elem(&datagram_flows, &key, &first, BPF_ANY);
		count(DATAGRAM_FLOWS, 1);
		f = bpf_map_lookup_elem(&datagram_flows, &key);
		if (!f)
			return 0;
	}
	longest = f->longest;
	bytes = f->bytes;
	if (in->length > longest)
		longest = in->length;
	if (bytes >= longest) {
		bytes -= longest;
		longest -= longest >> 4;
		f->step++;
	}
	f->longest = longest;
	f->bytes = bytes + in->length;
	step = f->step % g->n;
	track = g->n > NO_TRACK ? NO_TRACK : step;
	write_id(&in->v4, track << PLACE_BITS | (__sync_fetch_and_add(&f->next, segments) & PLACE_MASK));
	forbid_fragments(&in->v4);
	count(DATAGRAMS, segments);
	return step;
}
