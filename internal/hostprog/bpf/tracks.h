/* A datagram's number, in the IPv4 ID; weft/flowcell.Place. */

#define PLACE_BITS 12 /* the datagram's place in its flow */
#define PLACE_MASK ((1 << PLACE_BITS) - 1)
#define NO_TRACK 15 /* of a sender with more tracks than there are numbers */

/* Behind a place of 0 a super-packet may have counted into the track. No super-packet has more
 * datagrams. */
#define SUPER_DATAGRAMS 128
