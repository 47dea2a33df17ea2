// Package gro merges TCP segments that are in order into super-segments of up to 64 KB,
// so that the layers above are entered once for dozens of packets. It merges what Linux's
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
// The package reads headers only, and decides. The owner of the payloads joins them, by
// copying or by linking buffers.
//
// # The rules
//
// A packet can be merged at all if
//
//   - it is TCP directly behind an IPv4 header without options or an IPv6 header
//     without extension headers,
//   - it is not a fragment, and IPv4's reserved bit is 0,
//   - it has payload (a pure acknowledgement never merges: TCP counts them), and
//   - it has none of SYN, RST, URG and CWR.
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
// A packet that is smaller than the MSS, or has PSH or FIN, is the last of its train. So
// all segments but the last have one size, which segmentation needs.
//
// A packet may itself be a super-segment from a device with offloads. Then its own MSS,
// the device's gso_size, must be the train's. It counts as the segments that it consists
// of, and a shorter last segment ends the train. Its bytes do not show that it is a
// super-segment; the caller says so. If the caller does not know, the packet counts as a
// single large segment. That is harmless: its train has that size for an MSS.
//
// # Where Linux differs
//
// Linux requires that the IPv4 ID count up or stand still, and that IPv6 flow labels be
// equal. Here the ID and the lower 16 bits of the label are not compared. Senders put the
// flowcell number there ([weft/flowcell.Packet].ID). It selected the path and is not
// needed any more when a packet has arrived. If it were compared, trains would end
// wherever the path changed, which may be at every packet. The super-segment has the
// first packet's ID. With DF the ID has no meaning (RFC 6864 §4.1). Without DF, packets
// that are merged, segmented again and then fragmented can have IDs that their sender has
// given to other packets.
//
// Linux lets CWR begin a super-segment and, since it knows AccECN, lets all segments of
// one have it. Here a packet with CWR stays alone, which is right under either rule.
// Linux does not compare the urgent pointer.
package gro
