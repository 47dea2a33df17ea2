/*
 * Cuts TCP into flowlets: a packet with payload behind a pause of its flow that is longer
 * than the group's gap draws a path (choice.h), and the flow keeps to it until the next
 * pause (CONGA §3.4). It is weft/flowcell.Cutter for flowlets, for all of the host's own
 * addresses: no sender has to number. Behind cutter.h, whose table it uses: there cell and
 * longs stay 0.
 */

#define OPEN 1 /* of flow.segments: data was sent, so that highest and last are known */

/* flowlet returns the step of a TCP packet. Packets without payload are no part of a flowlet: each
 * acknowledgement takes any path, and what begins or ends a connection the path of the last
 * data, if that was just now (flowcell.Cutter.Edge). It is a function of its own for the same reason as draw. */
static __noinline __u32 flowlet(const struct inner *in, const struct tcp *tcp, const struct rack *rack,
				const struct group *g)
{
	struct flow_key key = flow_of(in, tcp->ports);
	struct flow *f = bpf_map_lookup_elem(&flows, &key);
	__u32 headers = in->header + (tcp->offset >> 4) * 4, now = ticks(), pause, end;
	int again;

	if (tcp->offset >> 4 < 5 || headers >= in->length) {
		if (f && tcp->flags & (FIN | SYN | RST) && f->group == g->number && just_sent(f))
			return f->step;
		return bpf_get_prandom_u32();
	}
	end = bpf_ntohl(tcp->seq) + in->length - headers;
	if (!f) {
		struct flow first = { .group = g->number, .highest = end, .last = now, .segments = OPEN };

		first.step = begin(&key, rack, g, 0);
		remember(&key, &first);
		return first.step;
	}
	again = (__s32)(end - f->highest) <= 0;
	if (!again)
		f->highest = end;
	pause = now - f->last;
	f->last = now;
	if (f->group != g->number || pause > g->gap || (again && pause > LEAST_TIMEOUT)) {
		f->group = g->number;
		f->step = begin(&key, rack, g, 0);
	}
	return f->step;
}
