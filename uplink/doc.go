// Package uplink gives an embedded stack.Host the fastest way into the fabric
// that a Linux machine has, in one call:
//
//	host, device, err := uplink.NewHost(stack.Config{Address: addr, Topology: fabric, Policy: "presto"}, uplink.Options{})
//
// What fails, the Host finds out by itself with stack.Config.Liveness, and hears
// from the switches where they run agents:
//
//	updates, err := listen.Open(listen.Config{Interface: device.Interface(), Topology: fabric, Address: addr,
//		Deliver: func(t *topology.Topology) { _ = host.SetTopology(t) }})
//
// Either way the Host tells the Device.
//
// What it puts together:
//
//	 netstack                                  netstack
//	    │ super-segment, flowcell number          ▲ super-segment
//	    ▼                                         │
//	   TUN ── the kernel routes                packet socket
//	    ▼                                         │ copies what is for the address
//	 tc egress: link header ── outer header    tc ingress: the kernel gets none of it
//	    ▼                                         │
//	────┴──────────────── uplink ─────────────────┴────
//
// A packet socket is the receiver since it gets super-segments whole that a bouncing
// switch has decapsulated; a TUN would get them cut. A program at the uplink's
// egress encapsulates, since no device takes super-segments of IP-in-IP from
// userspace. Where the kernel or its administrator refuses one of them, packets
// go by the TUN, in either direction, and the Host encapsulates: slower, and
// all the same otherwise. Device.Offloads says what was got, and why not more.
//
// The two programs are one of a kind in a network namespace. The Device that is
// opened first has them; a second one, or one beside a running weft host, does
// without, and weft host does not start beside a Device that has them.
//
// With Config.Carrier SRv6 the outer header is IPv6 with labels. What the Host
// encapsulates itself, probes for one, the kernel forwards then: it must forward
// IPv6, too, and have a route to encap.SIDBlock by the uplink's switch. Under the
// policies luopan and rand the program draws paths itself, flowcell by flowcell; a
// Host that samples tells it which to take (Device.Choose).
//
// Open needs CAP_NET_ADMIN; for the programs and the packet socket also CAP_BPF,
// CAP_NET_RAW and leave to write to /run/weft. The kernel must forward IPv4 and
// be of Linux 5.15 or later. link.OpenUDP, with stack.Config.Tunnel, is for
// processes that have no privileges at all.
package uplink
