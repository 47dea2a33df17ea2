// Package gro merges TCP segments that are in order into super-segments of up to 64 KB, so
// that the layers above are entered once for dozens of packets. It merges what Linux's
// generic receive offload merges (net/core/gro.c, net/ipv4/tcp_offload.c and af_inet.c,
// net/ipv6/ip6_offload.c), and nothing else, except that it ignores the packets' IDs. A
// super-segment can be cut into its segments again.
//
//	first packet    IP │ TCP │ 1448 bytes
//	next            IP │ TCP │ 1448 bytes      a Train decides: continues, or not
//	next            IP │ TCP │  612 bytes  PSH
//	                ───────────────────────
//	super-segment   IP │ TCP │ 1448 bytes │ 1448 bytes │ 612 bytes
//	                      └─ lengths, PSH and checksums by Finish
//
// The package sees headers only and decides; whoever owns the payloads joins
// them, by copying or by linking buffers.
//
// # The rules
//
// A packet can be merged at all if it is TCP directly behind an IPv4 header
// without options or an IPv6 header without extension headers, not a fragment
// and without IPv4's reserved bit, has payload (a pure acknowledgement never
// merges: TCP counts them), and has none of SYN, RST, URG and CWR.
//
// A packet continues a train if the following holds as well.
//
//   - Its sequence number is the one that the train ends at.
//   - These fields of the IP header are equal: addresses, TTL or hop limit, DF,
//     TOS or traffic class including the ECN codepoint, and for IPv6 the upper
//     four bits of the flow label.
//   - These fields of the TCP header are equal: ports, acknowledgement number,
//     window, data offset, reserved bits, all flags but PSH and FIN, the urgent
//     pointer, and every byte of the options, which includes timestamps.
//   - It is not larger than the train's first segment, whose payload is the
//     train's MSS.
//   - The super-segment will be no longer than MaxLength.
//
// A packet that is smaller than the MSS, or has PSH or FIN, is the last of its
// train. So all segments but the last have one size, as segmenting again needs
// it.
//
// A packet may itself be a super-segment from a device with offloads. Then its
// own MSS, the device's gso_size, must be the train's. It counts as the segments
// that it consists of, and a remainder makes it the last. Its bytes do not tell
// that it is one; the caller does. If the caller does not know, the packet is
// taken for a single large segment. That is harmless: its train has that size for
// an MSS.
//
// # Where Linux differs
//
// Linux has the IPv4 ID count up or stand still and IPv6 flow labels be equal.
// Here the ID and the lower 16 bits of the label are not compared. Senders put
// the flowcell number there ([weft/flowcell.Packet].ID). It selected the path and
// has done its work when a packet has arrived. If it were compared, trains would
// end wherever the path changed, which may be at every packet. The super-segment
// has the first packet's. Where DF is set the ID is without meaning (RFC 6864
// §4.1); where it is not, packets that are merged, segmented again and only then
// fragmented can have IDs that their sender has given to others.
//
// Linux lets CWR begin a super-segment and, since it knows AccECN, lets it be in
// all segments of one. Here such a packet stays alone, which is right under
// either rule. Linux does not compare the urgent pointer.
package gro
