// Package uplink gives an embedded stack.Host the fastest way into the fabric that a
// Linux machine has, in one call:
//
//	host, device, err := uplink.NewHost(stack.Config{Address: addr, Topology: fabric, Policy: "presto"}, uplink.Options{})
//
// With stack.Config.Liveness the Host finds failures by itself. Switches that run agents
// report failures:
//
//	updates, err := listen.Open(listen.Config{Interface: device.Interface(), Topology: fabric, Address: addr,
//		Deliver: func(t *topology.Topology) { _ = host.SetTopology(t) }})
//
// In both cases the Host passes the news on to the Device.
//
// The parts of a Device:
//
//	 netstack                                  netstack
//	    │ super-segment, flowcell number          ▲ super-segment
//	    ▼                                         │
//	  packet socket                            packet socket
//	    ▼                                         │ copies packets to the address
//	 tc egress: link header ── outer header    tc ingress: the kernel gets none of them
//	    ▼                                         │
//	────┴──────────────── uplink ─────────────────┴────
//
// A packet socket receives, because it gets super-segments whole after a bouncing switch
// has decapsulated them; a TUN would get them cut. Another one sends, because it says how much
// waits at the uplink (stack.QueueDevice), and takes many packets at a time. Packets pass tc and
// the uplink's queue, and not the kernel's routes or its firewall. There is a TUN for programs
// of this machine that talk to the Host. A program at the uplink's egress
// encapsulates, because no device takes super-segments of IP-in-IP from userspace. If the
// kernel or its administrator refuses one of these parts, packets in that direction go by
// the TUN, and the Host encapsulates. That is slower and otherwise the same.
// Device.Offloads says which parts there are, and why not more.
//
// A network namespace can have only one of each program. The first Device that is opened
// has them. A second one, or one beside a running weft host, does without. weft host does
// not start beside a Device that has them.
//
// With Config.Carrier SRv6 the outer header is IPv6 with labels. Where the TUN sends, the kernel
// forwards the packets that the Host itself encapsulates, such as probes. So it must forward
// IPv6, too, and have a route to encap.SIDBlock by the uplink's switch. Under the policies
// luopan and rand the program draws paths itself, one for each flowcell; a Host that
// samples tells it which to take (Device.Choose).
//
// Open needs CAP_NET_ADMIN; for the programs and the packet socket also CAP_BPF,
// CAP_NET_RAW and permission to write to /run/weft. The kernel must forward IPv4, for a Host
// with an IPv6 address IPv6, too, and be Linux 5.15 or later. For processes without privileges there is link.OpenUDP, with
// stack.Config.Tunnel.
package uplink
