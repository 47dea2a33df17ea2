package fabric

// routeProtocol marks the routes that come from a plan, so that Apply knows
// which ones it may remove. The number is unassigned in rt_protos.
const routeProtocol = 87

// maxDeviceName is the kernel's IFNAMSIZ less the terminating zero.
const maxDeviceName = 15

// The least MTU over which the kernel sends IPv4 and IPv6, in bytes.
const (
	minMTU  = 576
	minMTU6 = 1280
)

// ethernetHeader is the length of an Ethernet header without tags, in bytes.
const ethernetHeader = 14
