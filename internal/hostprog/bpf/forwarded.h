/* The TCP connections that this host forwards for what is behind it. */

/* A connection that is forwarded, as packets to this host have it; the key of order.c. */
struct connection {
	__be32 saddr[4]; /* of the other end */
	__be32 daddr[4]; /* of this end, after masquerading: as packets are at the uplink */
	__be32 ports;
};

/*
 * The connections of which this end has acknowledged something: that they are alive is then no
 * stranger's invention. spray.c writes them, order.c and the loader read them. When it is full,
 * those make room that have been idle longest.
 */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 65536);
	__type(key, struct connection);
	__type(value, __u32); /* when this end has sent last, in units of 2^30 ns */
} forwarded SEC(".maps");
