// Package uplink gives an embedded stack.Host the fastest way into the fabric
// that a Linux machine has, in one call:
//
//	host, device, err := uplink.NewHost(stack.Config{Address: addr, Topology: fabric, Policy: "presto"}, uplink.Options{})
//
// With stack.Config.Liveness the Host finds failures by itself. Switches that run agents
// tell it of failures:
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
// A packet socket is the receiver since it gets super-segments whole that a bouncing switch
// has decapsulated; a TUN would get them cut. A program at the uplink's egress
// encapsulates, since no device takes super-segments of IP-in-IP from userspace. Where the
// kernel or its administrator refuses one of them, packets go by the TUN, in either
// direction, and the Host encapsulates: this is slower and otherwise the same.
// Device.Offloads says which parts there are, and why not more.
//
// A network namespace can have only one of each program. The Device that is
// opened first has them. A second one, or one beside a running weft host, does
// without. weft host does not start beside a Device that has them.
//
// With Config.Carrier SRv6 the outer header is IPv6 with labels. The kernel then forwards
// packets that the Host itself encapsulates, such as probes. So it must forward IPv6, too,
// and have a route to encap.SIDBlock by the uplink's switch. Under the policies luopan and
// rand the program draws paths itself, flowcell by flowcell; a Host that samples tells it
// which to take (Device.Choose).
//
// Open needs CAP_NET_ADMIN; for the programs and the packet socket also CAP_BPF,
// CAP_NET_RAW and permission to write to /run/weft. The kernel must forward IPv4 and be
// Linux 5.15 or later. link.OpenUDP, with stack.Config.Tunnel, is for processes that have
// no privileges at all.
package uplink
