/*
 * Elephants and their pins: weft/internal/elephant. Behind count.h; the program's list of
 * counters has COUNTED, PINNED and UNPINNED.
 *
 * A program counts the bytes of each five-tuple of TCP and UDP, as they are on the wire. Its
 * agent reads that, and reports the elephants to a scheduler (Al-Fares' thesis, ch. 4). The
 * scheduler may answer with a path for a flow: a pin, which the program obeys before its rule
 * until the pin expires.
 */

/* Whether flows are pinned, and counted, too; the order of elephant.Duty. The loader sets it,
 * and makes room for one flow where nothing is. */
enum { NO_ELEPHANTS, PINS, PINS_AND_COUNTS };
const volatile __u8 elephants = NO_ELEPHANTS;

#define MAX_COUNTED 65536
#define MAX_PINS 16384 /* elephant.MaxPins */

/* A five-tuple; elephant.Key. IPv4 addresses are mapped, as ::ffff:10.0.0.1. */
struct five_tuple {
	__be32 saddr[4];
	__be32 daddr[4];
	__be32 ports;
	__u32 protocol;
};

/* When it is full, flows that have sent nothing for long make room. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, MAX_COUNTED);
	__type(key, struct five_tuple);
	__type(value, __u64); /* bytes */
} elephant_flows SEC(".maps");

struct pin {
	__u64 until; /* ns of the monotonic clock */
	__u32 way; /* at a switch the port's interface index, at a host an entry of bounces */
	__u32 among; /* at a switch its step in the route's set, at a host the group that it is of */
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, MAX_PINS);
	__type(key, struct five_tuple);
	__type(value, struct pin);
} elephant_pins SEC(".maps");

static __always_inline void map_ipv4(__be32 *six, __be32 four)
{
	six[2] = bpf_htonl(0xffff);
	six[3] = four;
}

/* count_flow adds to what a flow has sent. */
static __always_inline void count_flow(const struct five_tuple *key, __u64 bytes)
{
	__u64 *had = bpf_map_lookup_elem(&elephant_flows, key);

	if (!had && !bpf_map_update_elem(&elephant_flows, key, &bytes, BPF_NOEXIST)) {
		count(COUNTED, 1);
		return;
	}
	if (!had) /* another CPU was first */
		had = bpf_map_lookup_elem(&elephant_flows, key);
	if (had)
		__sync_fetch_and_add(had, bytes);
}

/* pin_of returns a flow's pin that has not expired. */
static __always_inline struct pin *pin_of(const struct five_tuple *key)
{
	struct pin *p = bpf_map_lookup_elem(&elephant_pins, key);

	if (!p || p->until > bpf_ktime_get_ns())
		return p;
	count(UNPINNED, 1);
	return NULL;
}
