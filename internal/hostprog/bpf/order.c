// Order at a host's uplink: what comes in order goes to the kernel at once. While a flow
// has a hole, a reader with a packet socket gets its packets in place of the kernel, and
// gives them to the kernel in order (hostprog.Order).
//
// Two programs decide together. The first is the filter of the reader's socket, which sees
// each packet before tc. It lets the reader have a packet, or not, and leaves a note. The
// second runs at tc ingress, right behind it on the same processor, and keeps from the
// kernel just what the reader got. A reader that has died has no socket and so no filter:
// the kernel gets everything from the next packet on. If the reader hangs, the filter sees
// no heartbeat and does the same.
//
// A flow changes hands without a lock. The filter counts what it has diverted, and the
// reader writes how much of it has gone to the kernel. When both are equal, nothing is on
// its way, and the flow is the filter's again. Each field has one writer: next is the
// filter's while both are equal, and the reader's otherwise. If a network card gives one
// flow to two processors, next may be a packet old: then a hole is seen where there is none,
// and the reader finds out.
//
// Anybody can send in the name of others, so what is forged must not cost more than a packet
// does. A segment that is further from its flow than a sender can be goes to the kernel at
// once, and changes nothing, until several in a row go on there. And the reader gets at will
// only packets of flows that have a socket, or that this host forwards to containers that have
// answered (forwarded.h). Where these are known, it gets none of those in which nobody takes part: another program may have
// them for a container, unknown to the kernel, which would reset the connection. The others, of
// connections that are being opened, share a budget. The second program looks for the socket,
// since a filter cannot.
//
// Datagrams that are listed are put in order, too, by the number that the sender's spray
// program has put into their IPv4 ID (datagrams.h). Their sequence numbers count datagrams:
// the low bits are those of the number.

#include "packet.h"
#include "ipv6.h"
#include "tracks.h"
#include "listed.h"
#include "behind.h"
#include "forwarded.h"

#define WAYS 4 /* of a bucket; hostprog.orderWays */
#define BUCKETS 16384 /* hostprog.orderBuckets */
#define ESTABLISHED 64 /* packets in order after which a flow is not forgotten for new ones */
#define IDLE 200 /* units of 1.05 ms; then it is */
/* Of straight: super-segments have come for which the reader has no room. The kernel's TCP puts
 * such a flow in order itself. */
#define LONGS (1 << 7)
#define NEAR (16 << 20) /* bytes by which a segment may be ahead, or, sent again, behind */
#define NEAR_UNITS (NEAR >> 16)
#define STRAYS_NEAR (1 << 20) /* bytes between strays that go on where the one before was */
#define LEAPS 4 /* strays in a row with which a flow goes on there */
/* Of far: the flow has, or had, a socket, or is forwarded to who takes part in it; or nobody here
 * has part in it. */
#define REAL (1 << 7)
#define NOBODYS (1 << 6)
#define KNOWN (REAL | NOBODYS)
/* Packets of flows without a socket in 16.8 ms, on each processor; hostprog.orderBudget */
#define BUDGET 64

/* The order of hostprog.OrderStats. */
enum { SEEN, STRAIGHT, DIVERTED, CROWDED, PASSED_DEAD, MISSED, LONG, DATAGRAMS, STRAYS, OVER_BUDGET, SHED, NUM_COUNTERS };

#include "count.h"
#include "heart.h"

struct key {
	__be32 saddr[4]; /* IPv4: mapped, ::ffff:a.b.c.d; of datagrams the second word is PROTO_UDP */
	__be32 daddr[4];
	__be32 ports;
};

/* hostprog.orderFlow. The whole is 64 bytes. */
struct flow {
	struct key key;
	__u32 next; /* the sequence number that is expected */
	__u64 diverted; /* packets; written here */
	__u64 returned; /* of these; written by the reader */
	__u32 seen; /* when, in units of 1.05 ms */
	__u8 straight; /* packets in order, up to ESTABLISHED, and LONGS; of datagrams, all that are near */
	__u8 far; /* packets in a row that were not, and REAL */
	union {
		__u16 tracks; /* that datagrams came by, a bit each */
		__u16 about; /* of TCP: where those are that are diverted, in units of 64 KB */
	};
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, BUCKETS * WAYS);
	__type(key, __u32);
	__type(value, struct flow);
} flows SEC(".maps");

/* Where the last stray of a flow ended. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, BUCKETS * WAYS);
	__type(key, __u32);
	__type(value, __u32);
} strays SEC(".maps");

/* What flows without a socket have had of the budget. */
struct spent {
	__u32 when; /* time in units of 16.8 ms */
	__u32 packets;
};
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct spent);
} budget SEC(".maps");

/* The addresses of this host whose TCP is put in order. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16); /* hostprog.maxSteered */
	__type(key, __be32[4]);
	__type(value, __u8);
} ordered SEC(".maps");

/* The filter's note about the packet that it has just seen. */
struct note {
	__u32 len; /* of the packet that was given to the reader; 0: none was */
	__u32 at; /* where its sequence number lies */
	__be32 seq;
	__u32 ask; /* 1 + the place of a flow: has it a socket? 0: do not ask */
	__u32 may_restart; /* 1: it goes on at restart, unless it has one */
	__u32 restart;
};
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct note);
} notes SEC(".maps");

/* Chosen at random by the loader, so that nobody else can choose flows of one bucket. */
volatile const __u64 seed = 0;

/* Of PARTS parts of the flows, for how many the reader restores the order, and, times 65,536, from
 * which one on. It sets this by what it has time for. What comes behind a hole of the other flows
 * goes to the kernel at once. */
#define PARTS 256 /* hostprog.orderParts */
volatile __u32 parts = PARTS;

/* Whether it is known what this host forwards (forwarded.h). The loader sets it. */
volatile const __u8 forwarding = 0;

/* How long packets the reader has room for, bytes with the IP header. The loader sets it. */
volatile const __u32 longest = 0xffff;

struct tcp {
	__be32 ports, seq, ack;
	__u8 offset, flags;
	__be16 window;
};
enum { FIN = 1, SYN = 2, RST = 4 };

/* orderKey.bucket of hostprog is the same. */
static __always_inline __u32 bucket_of(const struct key *k)
{
	__u64 h = seed;

	for (int i = 0; i < 4; i++) {
		h = (h ^ ((__u64)k->saddr[i] << 32 | k->daddr[i])) * 0xff51afd7ed558ccdULL;
		h ^= h >> 32;
	}
	h = (h ^ k->ports) * 0xc4ceb9fe1a85ec53ULL;
	h ^= h >> 29;
	return (__u32)h & (BUCKETS - 1);
}

static __always_inline int same(const struct key *a, const struct key *b)
{
	if (a->ports != b->ports)
		return 0;
	for (int i = 0; i < 4; i++)
		if (a->saddr[i] != b->saddr[i] || a->daddr[i] != b->daddr[i])
			return 0;
	return 1;
}

static __always_inline __u64 returned(const struct flow *f)
{
	return *(volatile __u64 *)&f->returned;
}

/*
 * find returns the flow of a key, and its number. With may_take it makes one that is missing, *is_new is then
 * 1, and its next is not set. It forgets no flow of which packets are diverted, and no established one
 * that is in use.
 */
static __always_inline struct flow *find(const struct key *k, __u32 now, int may_take, int *is_new, __u32 *number)
{
	__u32 at = bucket_of(k) * WAYS;
	struct flow *f, *place = NULL;

	for (int i = 0; i < WAYS; i++) {
		__u32 way = at + i;

		f = bpf_map_lookup_elem(&flows, &way);
		if (!f)
			return NULL;
		if (same(&f->key, k)) {
			*number = way;
			return f;
		}
		/* Signed: another processor's clock may be ahead. */
		if (f->diverted != returned(f) || (f->straight >= ESTABLISHED && (__s32)(now - f->seen) < IDLE))
			continue;
		if (!place || (__s32)(f->seen - place->seen) < 0) {
			place = f;
			*number = way;
		}
	}
	if (!may_take || !place)
		return NULL;
	place->key = *k;
	place->straight = place->far = 0;
	place->tracks = 0;
	*is_new = 1;
	return place;
}

/* It is a function of its own, so that the filter has registers left: of what it spills a pointer and
 * a shorter number may get one place, which the verifier refuses to programs without CAP_PERFMON. */
static __noinline int is_ordered(const __be32 *address)
{
	return bpf_map_lookup_elem(&ordered, address) || behind_at(address);
}

/* read4 and read6 read the headers of unfragmented TCP for one of the addresses, and return
 * where the TCP header is; 0 for other packets. *size is that of the IP packet. read4 does so
 * for datagrams as well, if they are numbered: *number is then theirs. */
static __always_inline __u32 read4(struct __sk_buff *skb, struct key *k, __u32 *size, __s32 *number)
{
	struct ipv4 ip;

	if (bpf_skb_load_bytes(skb, IP, &ip, sizeof(ip)) || !is_ipv4(&ip) || header_length(&ip) < sizeof(ip) ||
	    ip.frag_off & FRAGMENT || !total_length(skb, &ip))
		return 0;
	if (ip.protocol == PROTO_UDP && listing && ip.frag_off & DONT_FRAGMENT) {
		k->saddr[1] = bpf_htonl(PROTO_UDP);
		*number = bpf_ntohs(ip.id);
	} else if (ip.protocol != PROTO_TCP) {
		return 0;
	}
	k->saddr[2] = k->daddr[2] = bpf_htonl(0xffff);
	k->saddr[3] = ip.saddr;
	k->daddr[3] = ip.daddr;
	*size = total_length(skb, &ip);
	return IP + header_length(&ip);
}

static __always_inline __u32 read6(struct __sk_buff *skb, struct key *k, __u32 *size)
{
	struct ipv6 ip;

	if (bpf_skb_load_bytes(skb, IP, &ip, sizeof(ip)) || !is_ipv6(&ip) || ip.next != PROTO_TCP || !ip.payload)
		return 0;
	for (int i = 0; i < 4; i++) {
		k->saddr[i] = ip.saddr[i];
		k->daddr[i] = ip.daddr[i];
	}
	/* IPv4 in IPv6 has no place on the wire. */
	if (!k->daddr[0] && !k->daddr[1] && k->daddr[2] == bpf_htonl(0xffff))
		return 0;
	*size = sizeof(ip) + bpf_ntohs(ip.payload);
	return IP + sizeof(ip);
}

/* shed reports whether the reader has no time for a flow. All flows of a bucket are in one part. */
static __always_inline int shed(__u32 number)
{
	__u32 served = parts;

	return ((number / WAYS - (served >> 16)) & (PARTS - 1)) >= (served & 0xffff);
}

/* The filter returns how many bytes of a packet the reader gets: none, or all. */
enum { NOTHING = 0, EVERYTHING = 0x100000 };

static __always_inline int leave(__u32 why)
{
	count(why, 1);
	return NOTHING;
}

/* ask has weft_steer find out whether a flow has a socket. */
static __always_inline struct note *ask(__u32 number)
{
	__u32 zero = 0;
	struct note *note = bpf_map_lookup_elem(&notes, &zero);

	if (note) {
		note->ask = number + 1;
		note->may_restart = 0;
	}
	return note;
}

/* afford reports whether the reader may get one more packet of a flow. */
static __always_inline int afford(const struct flow *f)
{
	__u32 zero = 0, now = bpf_ktime_get_coarse_ns() >> 24;
	struct spent *s;

	if (f->far & KNOWN)
		return f->far & REAL;
	s = bpf_map_lookup_elem(&budget, &zero);
	if (!s)
		return 0;
	if (s->when != now) {
		s->when = now;
		s->packets = 0;
	}
	if (s->packets >= BUDGET)
		return 0;
	s->packets++;
	return 1;
}

/* leaps takes note of a stray, and reports whether the flow goes on there. */
static __always_inline int leaps(struct flow *f, __u32 number, __u32 seq, __u32 end)
{
	__u32 *last = bpf_map_lookup_elem(&strays, &number);
	__u8 n = f->far & ~KNOWN;

	if (!last)
		return 0;
	if (n && seq - *last + STRAYS_NEAR > 2 * STRAYS_NEAR)
		n = 0;
	*last = end;
	n = n + 1 == LEAPS ? 0 : n + 1;
	f->far = (f->far & KNOWN) | n;
	return !n;
}

/* divert gives a packet to the reader. at is of four bytes by which weft_steer knows it. */
static __always_inline int divert(struct __sk_buff *skb, struct flow *f, __u32 at, __be32 seq)
{
	__u32 zero = 0;
	struct note *note = bpf_map_lookup_elem(&notes, &zero);

	if (!note)
		return NOTHING;
	note->len = skb->len;
	note->at = at;
	note->seq = seq;
	__sync_fetch_and_add(&f->diverted, 1);
	count(DIVERTED, 1);
	return EVERYTHING;
}

/* datagrams_of is how many datagrams a packet has: a super-packet's are all but the last of
 * one size. */
static __always_inline __u32 datagrams_of(struct __sk_buff *skb, __u32 payload)
{
	__u32 each = skb->gso_size;

	return each && payload > each ? (payload + each - 1) / each : 1;
}

/* note_track learns by which tracks a flow's datagrams come. Each round of the numbers it begins
 * anew, also behind a hole, since the sender may have fewer paths by then. */
static __always_inline void note_track(struct flow *f, __u32 place, __u32 track)
{
	if (place < SUPER_DATAGRAMS) { /* it may be another's */
		f->straight = f->tracks = 0;
		return;
	}
	if (f->straight < ESTABLISHED)
		f->straight++;
	f->tracks |= 1 << track;
}

#define LATE 512 /* datagrams by which one may be behind; LEAPS have a flow begin anew */

/*
 * datagram decides about a packet of datagrams. One that is far behind is a stranger's, or
 * comes from a sender that has begun anew: several in a row have the flow go on there. A
 * wrong number makes datagrams go to the kernel sooner, or wait as long as for a lost one.
 */
static __always_inline int datagram(struct __sk_buff *skb, const struct key *k, __u32 now, __u32 number, __u32 n)
{
	__u32 place = number & PLACE_MASK, track = number >> PLACE_BITS, id = 0, at;
	int is_new = 0;
	struct flow *f = find(k, now, 1, &is_new, &at);
	__s32 ahead;

	if (!f)
		return leave(CROWDED);
	count(DATAGRAMS, n);
	f->seen = now;
	if (is_new) {
		f->next = place + n;
		return leave(STRAIGHT);
	}
	if (f->diverted != returned(f)) {
		if (unattended())
			return leave(PASSED_DEAD);
		if (shed(at))
			return leave(SHED);
		note_track(f, place, track);
	} else {
		ahead = (__s32)((place - f->next) << (32 - PLACE_BITS)) >> (32 - PLACE_BITS);
		if (ahead < -LATE) {
			if (++f->far == LEAPS) {
				f->far = f->straight = f->tracks = 0;
				f->next = place + n;
			}
			return leave(STRAIGHT);
		}
		f->far = 0;
		if (ahead <= 0 || unattended() || shed(at)) {
			if (ahead + (__s32)n > 0)
				f->next += ahead + n;
			note_track(f, place, track);
			return leave(ahead > 0 && !unattended() ? SHED : STRAIGHT);
		}
		note_track(f, place, track);
	}
	bpf_skb_load_bytes(skb, IP + offsetof(struct ipv4, id), &id, sizeof(id));
	return divert(skb, f, IP + offsetof(struct ipv4, id), id);
}

SEC("socket") int weft_order_filter(struct __sk_buff *skb)
{
	__u32 now = bpf_ktime_get_coarse_ns() >> 20, size = 0, at, headers, length, seq, end, flow = 0;
	struct key k = {};
	__s32 number = -1;
	struct flow *f;
	struct note *note;
	struct tcp t;
	int is_new = 0, held, near, begins;
	__s32 ahead;
	__s16 units;

	count(SEEN, 1);
	if (skb->pkt_type != PACKET_HOST || skb->vlan_present)
		return NOTHING;
	if (skb->protocol == bpf_htons(ETH_P_IP))
		at = read4(skb, &k, &size, &number);
	else if (skb->protocol == bpf_htons(ETH_P_IPV6))
		at = read6(skb, &k, &size);
	else
		return NOTHING;
	if (at && number >= 0) {
		if (size < at - IP + 8 || skb->len < IP + size || bpf_skb_load_bytes(skb, at, &k.ports, sizeof(k.ports)) ||
		    !is_ordered(k.daddr) || !is_listed(k.saddr[3], k.ports))
			return NOTHING;
		return datagram(skb, &k, now, number, datagrams_of(skb, size - (at - IP) - 8));
	}
	if (!at || bpf_skb_load_bytes(skb, at, &t, sizeof(t)))
		return NOTHING;
	headers = at - IP + (t.offset >> 4) * 4;
	if (size < headers || headers < at - IP + 20 || skb->len < IP + size || !is_ordered(k.daddr))
		return NOTHING;
	length = size - headers + !!(t.flags & SYN) + !!(t.flags & FIN);
	if (!length && !(t.flags & RST))
		return NOTHING; /* a pure acknowledgement */
	k.ports = t.ports;
	f = find(&k, now, !(t.flags & RST), &is_new, &flow);
	if (!f)
		return t.flags & RST ? NOTHING : leave(CROWDED);
	f->seen = now;
	if (t.flags & SYN)
		f->straight &= ~LONGS;
	if (size > longest)
		f->straight |= LONGS;
	if (!(f->far & REAL) && (f->straight & ~LONGS) < ESTABLISHED)
		ask(flow);
	seq = bpf_ntohl(t.seq);
	end = seq + length;
	if (is_new) {
		f->next = end;
		return leave(STRAIGHT);
	}
	held = f->diverted != returned(f);
	units = (__s16)((seq >> 16) - f->about);
	ahead = seq - f->next;
	near = held ? units >= -NEAR_UNITS && units <= NEAR_UNITS : ahead >= -NEAR && ahead <= NEAR;
	begins = t.flags & SYN && !held && !(near && ahead <= 0);
	if (begins && !(f->far & REAL)) {
		f->next = end;
		f->straight = f->far = 0;
		return leave(STRAIGHT);
	} else if (near && !begins) {
		f->far &= KNOWN;
	} else if (t.flags & RST) {
		return leave(STRAIGHT);
	} else if (leaps(f, flow, seq, end)) {
		if (!held) {
			f->next = end;
			return leave(STRAIGHT);
		}
		f->about = seq >> 16;
		units = 0;
	} else {
		/* The socket of a flow's last connection may be gone. */
		if (begins && (note = ask(flow))) {
			note->restart = end;
			note->may_restart = 1;
		}
		return leave(STRAYS);
	}
	if (!held) {
		int longs = f->straight & LONGS;

		int alone = t.flags & RST || unattended();

		if (ahead <= 0 || alone || longs || shed(flow)) {
			if ((__s32)(end - f->next) > 0 && !(t.flags & RST))
				f->next = end;
			if ((f->straight & ~LONGS) < ESTABLISHED)
				f->straight++;
			return leave(ahead <= 0 || alone ? STRAIGHT : longs ? LONG : SHED);
		}
		if (!afford(f)) {
			f->next = end;
			return leave(OVER_BUDGET);
		}
		f->about = seq >> 16;
	} else if (unattended()) {
		return leave(PASSED_DEAD);
	} else if (shed(flow)) {
		return leave(SHED);
	} else if (size > longest) {
		return leave(LONG);
	} else if (!afford(f)) {
		return leave(OVER_BUDGET);
	} else {
		/* Step by step, so that forged ones, being fewer, do not lead it away. */
		f->about += units > 0 ? 1 + (size >> 16) : units < 0 ? -1 : 0;
	}
	return divert(skb, f, at + offsetof(struct tcp, seq), t.seq);
}

/* States of the kernel's sockets in which one receives. */
enum { TCP_SYN_SENT = 2, TCP_LISTEN = 10 };
#define CONNECTED (1 << 1 | 1 << TCP_SYN_SENT | 1 << 4 | 1 << 5 | 1 << 8 | 1 << 9 | 1 << 11)

/* socket_of returns the state of the kernel's socket of a flow; 0: there is none. */
static __always_inline __u32 socket_of(struct __sk_buff *skb, const struct key *k)
{
	struct bpf_sock_tuple t = {};
	struct bpf_sock *sk;
	__u32 state;

	if (k->daddr[2] == bpf_htonl(0xffff) && !k->daddr[0] && !k->daddr[1]) {
		t.ipv4.saddr = k->saddr[3];
		t.ipv4.daddr = k->daddr[3];
		__builtin_memcpy(&t.ipv4.sport, &k->ports, sizeof(k->ports));
		sk = bpf_skc_lookup_tcp(skb, &t, sizeof(t.ipv4), BPF_F_CURRENT_NETNS, 0);
	} else {
		__builtin_memcpy(t.ipv6.saddr, k->saddr, sizeof(k->saddr));
		__builtin_memcpy(t.ipv6.daddr, k->daddr, sizeof(k->daddr));
		__builtin_memcpy(&t.ipv6.sport, &k->ports, sizeof(k->ports));
		sk = bpf_skc_lookup_tcp(skb, &t, sizeof(t.ipv6), BPF_F_CURRENT_NETNS, 0);
	}
	if (!sk)
		return 0;
	state = sk->state;
	bpf_sk_release(sk);
	return state < 32 ? state : 0;
}

/* is_forwarded reports whether a flow is one that this host forwards, and the end behind it takes part. */
static __always_inline int is_forwarded(const struct key *k)
{
	struct connection c;

	__builtin_memcpy(&c, k, sizeof(c));
	return bpf_map_lookup_elem(&forwarded, &c) != NULL;
}

/* answer answers what the filter has asked. It runs right behind the filter, and so writes
 * what is the filter's. */
static __always_inline void answer(struct __sk_buff *skb, struct note *note)
{
	__u32 number = note->ask - 1, state;
	struct flow *f = bpf_map_lookup_elem(&flows, &number);

	note->ask = 0;
	if (!f)
		return;
	state = socket_of(skb, &f->key);
	if (!note->may_restart) {
		f->far &= ~KNOWN;
		/* A port that leads to a container may have a listener here, too: Docker's proxy is one. */
		if (1 << state & CONNECTED || ((!state || state == TCP_LISTEN) && is_forwarded(&f->key)))
			f->far |= REAL;
		else if (!state && forwarding)
			f->far |= NOBODYS;
		return;
	}
	if ((1 << state & CONNECTED && state != TCP_SYN_SENT) || f->diverted != returned(f))
		return;
	f->next = note->restart;
	f->straight = 0;
	f->far = state == TCP_SYN_SENT ? REAL : 0;
}

/* It has the name of steer.c's, whose place it takes. */
SEC("tc") int weft_steer(struct __sk_buff *skb)
{
	struct note *note;
	__u32 zero = 0, len;
	__be32 seq;

	note = bpf_map_lookup_elem(&notes, &zero);
	if (!note)
		return TC_ACT_UNSPEC;
	if (note->ask)
		answer(skb, note);
	if (!note->len)
		return TC_ACT_UNSPEC;
	len = note->len;
	note->len = 0;
	if (len != skb->len || bpf_skb_load_bytes(skb, note->at, &seq, sizeof(seq)) || seq != note->seq)
		return pass(MISSED); /* another program has let that packet go elsewhere */
	return TC_ACT_SHOT;
}

char _license[] SEC("license") = "GPL";
