package kernel

// RouteProtocol marks the routes that come from a plan, so that Apply knows
// which ones it may remove. The number is unassigned in rt_protos.
const RouteProtocol = 87

// MaxDeviceName is the kernel's IFNAMSIZ less the terminating zero.
const MaxDeviceName = 15

// The least MTU over which the kernel sends IPv4 and IPv6, in bytes.
const (
	MinMTU  = 576
	MinMTU6 = 1280
)

// EthernetHeader is the length of an Ethernet header without tags, in bytes.
const EthernetHeader = 14
