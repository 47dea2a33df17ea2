package doctor

import (
	"net/netip"
	"time"

	"weft/internal/overview"
)

// The roles of a machine.
const (
	RoleHost   = "host"
	RoleSwitch = "switch"
)

// Facts is what was found out about a host or a switch. Names in Unknown are checks for which
// something could not be found out, with the reason.
type Facts struct {
	Role     string
	Expected bool // a daemon is to run here
	Offline  bool // the daemon is not asked: only what a configuration needs is looked at

	System   System
	Config   *Config // nil: there is no file
	Daemon   Daemon
	Devices  []Device          // a host's uplinks, a switch's ports
	Settings map[string]string // sysctls by their names; absent: there is none
	Firewall []Chain
	Gateways []Gateway
	Answers  map[netip.Addr]bool // bouncing switches that were pinged, and whether they answered
	Cables   []Cable
	Clock    Clock
	Twin     string // the hardware address of another machine that has the host's address, too
	Plan     *Plan  // what the switch is to be configured with

	// The daemon's status, and an earlier one. Only that of the role is not nil, and only if the
	// daemon answers.
	Host, HostBefore     *overview.Host
	Switch, SwitchBefore *overview.Switch
	Elapsed              time.Duration // between the two

	Unknown map[string]string
}

// System is the kernel and what this process may do with it.
type System struct {
	Release                 string   // such as 6.18.44
	Root                    bool     // this process may look at everything
	Missing                 []string // capabilities that root lacks here, as in a container, needed or not
	BPF                     string   // why eBPF programs cannot be loaded; "" if they can, or nobody could try
	BTF                     bool     // the kernel describes its types
	TCX                     bool
	TUN                     string // why /dev/net/tun cannot be opened
	Memlock                 uint64 // RLIMIT_MEMLOCK, bytes
	Conntrack, ConntrackMax int    // entries; 0: there is no connection tracking
}

// Config is what the configuration file says, and how it fits the machine.
type Config struct {
	File    string
	Error   string // why the daemon refuses it
	User    string // why the user that the daemon is to run as is none
	Misfits []Misfit
	Keys    []KeyFile

	Topology   string
	Sprays     bool   // packets of one connection take several paths
	Gateway    bool   // TCP passes through the daemon, or the order is restored by a TUN
	TUN        string // its name
	Signed     bool   // updates have keys
	Carrier    string // ipip, srv6 or udp
	Congestion string // TCP's congestion control towards the fabric; "": the kernel's
	QCN        bool
	UDPPort    int     // a tunnel's own
	Becomes    bool    // the daemon becomes another user than root
	Configures bool    // weft switch sets the switch up
	RateMbit   float64 // of the host's link, by the topology; 0: it does not say
}

// Misfit is a key of the configuration that the machine does not have what it names for.
type Misfit struct {
	Key  string // such as uplink; "" if it is none in particular
	Text string
	Auto bool // the configuration has it found out, and names nothing
}

// KeyFile is a file with a secret.
type KeyFile struct {
	Path     string
	Error    string        // it cannot be read by root
	Readable bool          // by the user that the daemon runs as
	User     string        // its name
	Others   bool          // everybody may read it
	From     time.Duration // until it is in force; 0 or less: it is
}

// Daemon is what is known of the process.
type Daemon struct {
	Answers  bool
	Error    string // why not
	Process  int    // that has the lock; 0: none
	Stopped  bool   // the process is stopped, or does not run
	Leftover bool   // a daemon that died has left its set-up
	Hidden   bool   // the configuration says status: off
}

// Device is a network device.
type Device struct {
	Name      string
	Present   bool
	Up        bool // administratively
	Carrier   bool
	MTU       int
	SpeedMbit int             // 0: it does not say
	Half      bool            // duplex
	Rate      float64         // Mbit/s to which a queueing discipline limits it; 0: none
	WantRate  float64         // Mbit/s by the topology, or the lab; 0: not known
	WantMTU   int             // by the lab; 0: not known
	Disturbed string          // a queueing discipline that delays or drops on purpose, in words
	XDP       bool            // a program of XDP
	Offloads  map[string]bool // gro, gso, tso, tx, rx, sg; absent: not known
	Errors    uint64          // received and sent, between two looks
	Programs  map[string]bool // weft's, by the name of their place, and whether they are there
	Foreign   []Foreign       // that run in front of weft's
	Drops     []Foreign       // filters of tc that drop packets
	Decap     string          // of a switch's port: ipip, ebpf or ""
	ToHost    bool            // of a switch's port: a host is behind it, by the topology
}

// Foreign is another owner's program or filter.
type Foreign struct {
	Hook, Text string
}

// Gateway is the switch behind an uplink.
type Gateway struct {
	Device string
	Addr   netip.Addr
	Failed bool // it does not answer ARP
}

// Cable is what the other end of a device says of itself, by LLDP.
type Cable struct {
	Device   string
	Node     string // at the other end
	Expected string // by the topology
}

// Clock is the machine's.
type Clock struct {
	Year     int  // of the time of day
	Unsynced bool // the kernel does not know it to be right
}

// Plan is what a switch is to be configured with.
type Plan struct {
	Node     string
	Settings []Setting
	Bouncing bool // it takes outer headers off
	Missing  []Missing
	Routes   int // that there are to be
}

// Missing is a destination without a route, and the ports that it should lead to.
type Missing struct {
	Prefix string
	Ports  []string
}

// Setting is a sysctl and what it is to be.
type Setting struct{ Key, Value string }
