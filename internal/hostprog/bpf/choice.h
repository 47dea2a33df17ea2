/*
 * Draws the path of a flowcell: the path that was chosen for its rack while that choice
 * is valid, otherwise a random live path. It is for policies that follow samples
 * (Luopan §3), and for random policies, for which nobody chooses.
 */

/* The choice for the next flowcells to a rack. The loader writes it whole. A packet that
 * reads a half-written choice takes another live path, or the former one, once. */
struct choice {
	__u32 group; /* that has the path; others know nothing of it */
	__u32 step; /* of the group's order */
	__u64 until; /* ns of the monotonic clock */
};

/* By number of rack. Where nothing is drawn, the loader makes room for one. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MAX_PREFIXES);
	__type(key, __u32);
	__type(value, struct choice);
} choices SEC(".maps");

/* What tells the loader which racks are worth sampling. */
struct activity {
	__u64 flowcells; /* begun */
	__be32 host; /* to which the latest was */
	__u32 unused;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MAX_PREFIXES);
	__type(key, __u32);
	__type(value, struct activity);
} active SEC(".maps");

/* draw returns a step of the order for a flowcell that begins. It is a function of its own:
 * inlined, it leaves so few registers that pointers are spilled, which the verifier does not
 * let a loader without CAP_PERFMON do everywhere. */
static __noinline __u32 draw(const struct group *g, const struct rack *rack, __be32 host)
{
	struct activity *a = bpf_map_lookup_elem(&active, &rack->number);
	struct choice *c = bpf_map_lookup_elem(&choices, &rack->number);
	__u32 step = bpf_get_prandom_u32();
	struct traffic *t;

	if (a) {
		a->host = host;
		__sync_fetch_and_add(&a->flowcells, 1);
	}
	if (c && c->group == g->number && bpf_ktime_get_ns() < c->until) {
		step = c->step;
		count(CHOSEN, 1);
	}
	step %= g->n;
	t = bpf_map_lookup_elem(&bounces, &g->order[step & (MAX_PATHS - 1)]);
	if (t)
		t->flowcells++;
	return step;
}
