/* Luopan at a leaf switch (§3): the choice by samples, which are asked for and answered here. */

/* least_sampled is Luopan's choice (§3.2): the best sample's path while it is good, else a
 * random one. */
__noinline __u32 least_sampled(__u32 number, __u64 now)
{
	__u32 zero = 0;
	struct rack *r = bpf_map_lookup_elem(&racks, &number);
	struct sampling *s = bpf_map_lookup_elem(&sampled, &number);
	struct engine *e = bpf_map_lookup_elem(&engines, &zero);

	if (!s || !e || !r)
		return NO_PATH;
	if (now < s->until && s->best < MAX_PATHS && r->bounce[s->best & (MAX_PATHS - 1)]) {
		count(GUIDED, 1);
		return s->best;
	}
	return r->order[below(e, r->n) & (MAX_PATHS - 1)];
}

/* A sample: encap.Sample. */
struct sample {
	struct ipv4 ip;
	__be16 source, dest, length;
	__sum16 check;
	__be32 magic, word;
	__u8 version, meters, marked, unused;
	__be32 token[2], received[2], reserved;
};

/* write_sample makes a packet of at least a sample's length the sample s, behind an outer
 * header. All of s but the token, addresses and what an answer says is filled in. */
static __always_inline int write_sample(struct __sk_buff *skb, struct sample *s, __be32 bounce, __u32 room)
{
	struct {
		struct ipv4 outer;
		struct sample s;
	} h = {
		.outer = {
			.version_ihl = 0x45,
			.tos = ECT0,
			.tot_len = bpf_htons(sizeof(h)),
			.frag_off = DONT_FRAGMENT,
			.ttl = HOP_LIMIT,
			.protocol = PROTO_IPIP,
			.saddr = s->ip.saddr,
			.daddr = bounce,
		},
	};
	__u32 sum;

	s->ip.version_ihl = 0x45;
	s->ip.tos = ECT0;
	s->ip.tot_len = bpf_htons(sizeof(*s));
	s->ip.id = 0;
	s->ip.frag_off = DONT_FRAGMENT;
	s->ip.ttl = HOP_LIMIT;
	s->ip.protocol = PROTO_UDP;
	s->ip.check = 0;
	s->ip.check = ~fold(bpf_csum_diff(0, 0, (__be32 *)&s->ip, sizeof(s->ip), 0));
	s->source = s->dest = SAMPLE_PORT;
	s->length = bpf_htons(sizeof(*s) - sizeof(s->ip));
	s->magic = SAMPLE_MAGIC;
	s->version = SAMPLE_VERSION;
	s->check = 0;
	/* The pseudo header: addresses, protocol, length. */
	sum = bpf_csum_diff(0, 0, &s->ip.saddr, 8, bpf_htons(PROTO_UDP) + s->length);
	sum = bpf_csum_diff(0, 0, (__be32 *)&s->source, sizeof(*s) - sizeof(s->ip), sum);
	s->check = ~fold(sum);
	if (!s->check)
		s->check = 0xffff;
	h.outer.check = ~fold(bpf_csum_diff(0, 0, (__be32 *)&h.outer, sizeof(h.outer), 0));
	h.s = *s;
	/* One packet, so there is nothing to tell the kernel of the header inside. It would refuse
	 * that of a packet from which a header has been taken off. */
	if (bpf_skb_change_tail(skb, IP + sizeof(h) - room, 0) || bpf_skb_adjust_room(skb, room, BPF_ADJ_ROOM_MAC, 0))
		return -1;
	return bpf_skb_store_bytes(skb, IP, &h, sizeof(h), 0);
}

/* probe makes a packet's copy a sample of a path to the packet's rack. */
static __noinline int probe(struct __sk_buff *skb)
{
	__u32 i = skb->mark & (MAX_SAMPLES - 1), number, path;
	__be64 token;
	__u32 at = 16, sum;
	__u16 half;
	struct sample s = {};
	struct sampling *round;
	struct rack *r;
	struct ipv4 ip;

	skb->mark = 0;
	if (bpf_skb_load_bytes(skb, IP, &ip, sizeof(ip)) || header_length(&ip) < sizeof(ip))
		return TC_ACT_SHOT;
	number = rack_of(ip.daddr);
	round = bpf_map_lookup_elem(&sampled, &number);
	r = bpf_map_lookup_elem(&racks, &number);
	if (!r || !round || ip.daddr != round->host || ip.saddr != round->source)
		return TC_ACT_SHOT;
	path = round->path[i];
	if (path >= MAX_PATHS || !r->bounce[path & (MAX_PATHS - 1)] || !round->token[i])
		return TC_ACT_SHOT;
	s.ip.saddr = ip.saddr;
	s.ip.daddr = ip.daddr;
	s.word = bpf_htonl(path << 8);
	token = bpf_cpu_to_be64(round->token[i]);
	__builtin_memcpy(s.token, &token, sizeof(s.token));
	/* The kernel of a host beside, as in a lab, may have left the checksum to a device, which
	 * then completes it in the sample, too: from the place of the former header on, at that
	 * of its checksum. Room is made so that this is in the sample's reserved word. There is
	 * what stays the same by that: half of the complement of the sum of all behind. */
	if (ip.protocol == PROTO_UDP) {
		at = 6; /* nothing but zeros */
	} else {
		sum = fold(fold(bpf_csum_diff(0, 0, s.token, sizeof(s.token), 0))) ^ 0xffff;
		half = (sum & 1 ? sum + 0xffff : sum) / 2;
		__builtin_memcpy(&s.reserved, &half, sizeof(half));
	}
	if (write_sample(skb, &s, r->bounce[path & (MAX_PATHS - 1)],
			 offsetof(struct sample, reserved) + sizeof(ip) - header_length(&ip) - at))
		return TC_ACT_SHOT;
	count(SAMPLED, 1);
	return TC_ACT_UNSPEC;
}

static __always_inline __u64 patience(const struct sampling *s)
{
	__u64 p = 4 * s->rtt;

	p = (p > PATIENCE ? p : PATIENCE) << (s->silent < 7 ? s->silent : 7);
	return p < MAX_PATIENCE ? p : MAX_PATIENCE;
}

/* ask begins a round, if one is due: of random paths, one sample each (Luopan §3.1). Its
 * samples go in the name of the packet's sender to the packet's destination. */
static __noinline void ask(struct __sk_buff *skb, const struct rack *r, __be32 source, __be32 host, __u64 now)
{
	__u32 zero = 0, number = r->number, n = samples < r->n ? samples : r->n, mark = skb->mark;
	struct sampling *s = bpf_map_lookup_elem(&sampled, &number);
	struct engine *e = bpf_map_lookup_elem(&engines, &zero);
	__u32 place[MAX_SAMPLES] = { NO_PATH, NO_PATH, NO_PATH, NO_PATH };
	__u64 due;

	if (!s || !e || r->n < 2)
		return;
	due = s->due;
	if ((__s64)(now - due) < 0)
		return;
	if (s->round && s->shown != s->round)
		s->silent = s->silent < 7 ? s->silent + 1 : 7;
	if (__sync_val_compare_and_swap(&s->due, due, now + patience(s)) != due)
		return; /* another CPU's */
	s->began = now;
	s->host = host;
	s->source = source;
	s->round++;
#pragma unroll
	for (__u32 i = 0; i < MAX_SAMPLES; i++) {
		__u32 to = r->n - n + i, at;

		s->token[i] = 0;
		if (i >= n)
			continue;
		at = below(e, to + 1); /* R. Floyd's algorithm */
		if (at == place[0] || at == place[1] || at == place[2] || at == place[3])
			at = to;
		place[i] = at;
		s->path[i] = r->order[at & (MAX_PATHS - 1)];
		s->token[i] = ((__u64)bpf_get_prandom_u32() << 32 | bpf_get_prandom_u32() | 1) ^ (mix(seed ^ now) & ~1ULL);
	}
#pragma unroll
	for (__u32 i = 0; i < MAX_SAMPLES; i++) {
		if (i < n) {
			skb->mark = PROBE | i;
			bpf_clone_redirect(skb, skb->ifindex, BPF_F_INGRESS);
		}
	}
	skb->mark = mark;
}

#define NEVER (~0ULL)

/* learn takes an answer to one of the latest round's samples; 0 if it is none. */
static __noinline int learn(__u32 number, const struct sample *s, __u64 now)
{
	struct sampling *round = bpf_map_lookup_elem(&sampled, &number);
	__u32 word = bpf_ntohl(s->word), found = 0;
	__u64 token, rank, quick, lasts, idlest, fastest;

	if (!round)
		return 0;
	__builtin_memcpy(&token, s->token, sizeof(token));
	token = bpf_be64_to_cpu(token);
#pragma unroll
	for (__u32 i = 0; i < MAX_SAMPLES; i++) {
		if (token && round->token[i] == token && round->path[i] == word >> 8 && s->ip.saddr == round->host &&
		    s->ip.daddr == round->source) {
			round->token[i] = 0;
			found = 1;
			break;
		}
	}
	if (!found)
		return 0;
	/* By queue, if switches have written it into all of the round, else by the round trip. */
	rank = word & SAMPLE_QUEUE;
	quick = (now - round->began) & 0xffffffff;
	if (s->marked) {
		rank |= 1ULL << 40;
		quick |= 1ULL << 40;
	}
	if (round->shown != round->round) {
		round->rtt = round->rtt ? round->rtt - round->rtt / 8 + (now - round->began) / 8 : now - round->began;
		lasts = expiry ? expiry : round->rtt > least_expiry ? round->rtt : least_expiry;
		round->shown = round->round;
		round->silent = 0;
		round->due = now + lasts;
		round->until = now + lasts + round->rtt; /* until the next round's answer is due */
		round->rank = round->quick = NEVER;
		round->unmetered = 0;
	}
	if (rank < round->rank) {
		round->rank = rank;
		round->idlest = word >> 8;
	}
	if (quick < round->quick) {
		round->quick = quick;
		round->fastest = word >> 8;
	}
	if (!s->meters)
		round->unmetered = 1;
	idlest = round->idlest;
	fastest = round->fastest;
	/* Or the compiler chooses between their places, which needs CAP_PERFMON. */
	asm volatile("" : "+r"(idlest), "+r"(fastest));
	round->best = round->unmetered ? fastest : idlest;
	return 1;
}

/* may_answer bounds answers to each rack, and to all of them. */
static __always_inline int may_answer(__u32 number, struct engine *e, __u64 now)
{
	struct answering *a = bpf_map_lookup_elem(&answering, &number);

	if (!a)
		return 0;
	if (now - e->span >= SPAN)
		e->span = now, e->answers = 0;
	if (now - a->span >= SPAN)
		a->span = now, a->answers = 0;
	if (a->answers >= ANSWERS || e->answers >= ALL_ANSWERS)
		return 0;
	a->answers++;
	e->answers++;
	return 1;
}

/* answer sends another's sample back by the path by which it came, for a host of the rack. */
static __noinline int answer(struct __sk_buff *skb, __u32 number, struct sample *s, __u64 now)
{
	__u32 zero = 0, path = bpf_ntohl(s->word) >> 8;
	struct engine *e = bpf_map_lookup_elem(&engines, &zero);
	struct rack *r = bpf_map_lookup_elem(&racks, &number);
	__be32 host = s->ip.daddr;
	__be64 received;

	if (!e || !r || path >= MAX_PATHS || !r->bounce[path & (MAX_PATHS - 1)])
		return speaks(host, now) ? pass(UNANSWERED) : drop(UNANSWERED);
	if (!may_answer(number, e, now))
		return drop(UNANSWERED);
	s->word |= bpf_htonl(SAMPLE_ACK);
	s->marked = (s->ip.tos & ECN_MASK) == CE;
	s->unused = 0;
	s->reserved = 0;
	received = bpf_cpu_to_be64(now);
	__builtin_memcpy(s->received, &received, sizeof(received));
	s->ip.daddr = s->ip.saddr;
	s->ip.saddr = host;
	if (write_sample(skb, s, r->bounce[path & (MAX_PATHS - 1)], sizeof(struct ipv4)))
		return drop(UNANSWERED);
	count(ANSWERED, 1);
	return TC_ACT_UNSPEC;
}
