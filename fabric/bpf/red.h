/*
 * Random Early Detection on a virtual queue (Floyd and Jacobson, 1993; thesis §5.3.1,
 * Fig. 5.5). fabric.redState says what the fields are and does the same in Go.
 *
 * The caller holds the port's lock, so nothing here calls a helper.
 */

#define RED_FRACTION 8 /* bits of the average behind the byte */
#define RED_ONE (1 << 16) /* a weight, or the probability at max, of 1 */
#define RED_IDLE_BITS 16 /* after 2^16 packets' time of rest nothing is left */
#define RED_CERTAIN (1ULL << 24) /* a probability of 1 */

enum red_choice { RED_PASS, RED_EARLY, RED_FORCED };

struct red {
	__u64 min, max, limit, slot;
	__u32 weight, max_p, mark, since;
	__u64 average, random;
	__u64 early, forced;
};

/* red_rest lets the average fall while the queue is empty, for so many ns. */
static __always_inline void red_rest(struct red *r, __u64 idle)
{
	__u64 slots = idle / r->slot, average = r->average, factor = RED_ONE - r->weight;

	if (slots >> RED_IDLE_BITS)
		average = 0;
#pragma unroll
	for (int bit = 0; bit < RED_IDLE_BITS; bit++) {
		if (slots >> bit & 1)
			average = average * factor >> 16;
		factor = factor * factor >> 16;
	}
	r->average = average;
}

/* red_look adds the queue that a packet finds, in bytes, to the average. */
static __always_inline void red_look(struct red *r, __u64 queued)
{
	__u64 average = r->average;

	queued <<= RED_FRACTION;
	if (queued > average)
		average += (queued - average) * r->weight >> 16;
	else
		average -= (average - queued) * r->weight >> 16;
	r->average = average;
}

/* red_choose says what is to become of the packet. */
static __always_inline enum red_choice red_choose(struct red *r)
{
	__u64 p, spread, x = r->random;

	if (r->average < r->min) {
		r->since = 0;
		return RED_PASS;
	}
	if (r->average >= r->limit) {
		r->since = 1;
		return RED_FORCED;
	}
	if (r->average < r->max)
		p = (r->average - r->min) * r->max_p / ((r->max - r->min) >> RED_FRACTION);
	else /* gentle */
		p = ((__u64)r->max_p << RED_FRACTION) +
		    (r->average - r->max) * (RED_ONE - r->max_p) / (r->max >> RED_FRACTION);
	/* The gaps between chosen packets are uniform: 1/(1 - count * p). */
	spread = r->since * p;
	p = spread < RED_CERTAIN ? (p << 24) / (RED_CERTAIN - spread) : RED_CERTAIN;
	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	r->random = x;
	if (x >> 40 >= p) {
		r->since++;
		return RED_PASS;
	}
	r->since = 1;
	return RED_EARLY;
}
