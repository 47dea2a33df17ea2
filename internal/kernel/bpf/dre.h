/*
 * The discounting rate estimator of CONGA §3.2 in whole numbers: weft/conga.DRE. A register X
 * grows by the bytes sent, in 1/DRE_SCALE, and loses a sixteenth in each tick.
 */

#define DRE_FACTOR ((1 << 16) - (1 << 12)) /* 1 - alpha in 2^-16 */
#define DRE_FORGOTTEN 256
#define DRE_SCALE 256
#define DRE_LEVELS 8
#define DRE_MOST (1ULL << 47)

/* dre_decayed is X after so many ticks. */
static __always_inline __u64 dre_decayed(__u64 x, __u64 ticks)
{
	__u64 factor = DRE_FACTOR;

	if (ticks >= DRE_FORGOTTEN)
		return 0;
#pragma unroll
	for (int bit = 0; bit < 8; bit++) {
		if (ticks >> bit & 1)
			x = x * factor >> 16;
		factor = factor * factor >> 16;
	}
	return x;
}

/* dre_level is how busy the link is, where target is X of a full one. */
static __always_inline __u32 dre_level(__u64 x, __u64 target)
{
	x = x * DRE_LEVELS / target;
	return x < DRE_LEVELS ? x : DRE_LEVELS - 1;
}
