package overview

import (
	"encoding/json"
	"fmt"
	"net/netip"
)

// Host is what a host's View needs of its status. package daemon says what the fields mean.
type Host struct {
	Mode          string `json:"mode"`
	ModeWhy       string `json:"mode_why"`
	Encapsulation string `json:"encapsulation"`
	Topology      string `json:"topology"`
	Policy        string `json:"policy"`
	Unit          string `json:"unit"`
	Address       string `json:"address"`
	Address6      string `json:"address6"`
	Uplink        string `json:"uplink"`
	Process       int    `json:"process"`
	Uptime        int64  `json:"uptime_s"`

	State    string    `json:"state"`
	Trouble  string    `json:"trouble"`
	Repairs  uint64    `json:"repairs"`
	Latest   []string  `json:"latest_repairs"`
	Uplinks  []Uplink  `json:"uplinks"`
	Others   []Foreign `json:"others"`
	Racks    []Rack    `json:"racks"`
	Reach    *Reach    `json:"reach"`
	Failures *Failures `json:"failures"`
	BGP      *BGP      `json:"bgp"`
	Supers   *Supers   `json:"super_segments"`

	Behind        []Behind `json:"behind"`
	BehindUnnamed int      `json:"behind_unnamed"`

	Congestion []Congestion `json:"congestion"`
	QCN        *Part        `json:"qcn"`
	Scheduler  *Scheduler   `json:"scheduler"`
	Offload    *Offload     `json:"offload"`
	Steer      *Part        `json:"steer"`
	Order      *Part        `json:"order"`
	Dataplane  *Dataplane   `json:"dataplane"`
}

// Uplink is one of several.
type Uplink struct {
	Device string `json:"device"`
	Switch string `json:"switch"`
	Up     bool   `json:"up"`
}

// Foreign is another owner's program at the uplink.
type Foreign struct {
	Hook  string `json:"hook"`
	Kind  string `json:"kind"`
	Name  string `json:"name"`
	ID    uint32 `json:"id"`
	Front bool   `json:"front"`
}

// Rack is one that is not reached as it should be.
type Rack struct {
	Rack   string `json:"rack"`
	Prefix string `json:"prefix"`
	Plain  bool   `json:"plain"`
	MTU    int    `json:"mtu"`
	Why    string `json:"why"`
}

// Reach says how the racks are reached, and by which paths those in use.
type Reach struct {
	Racks   int         `json:"racks"`
	Plain   int         `json:"plain"`
	Limited int         `json:"limited"`
	InUse   []RackPaths `json:"in_use"`
	Unnamed int         `json:"unnamed"`
}

// RackPaths is how the paths to a rack in use are.
type RackPaths struct {
	Rack   string  `json:"rack"`
	Prefix string  `json:"prefix"`
	Plain  bool    `json:"plain"`
	Paths  int     `json:"paths"`
	Up     int     `json:"up"`
	Hosts  int     `json:"hosts"`
	Mute   int     `json:"mute"`
	RTT    float64 `json:"rtt_ms"`
	Most   float64 `json:"rtt_most_ms"`
	Loss   float64 `json:"loss"`
	Worst  string  `json:"worst"`
	Why    string  `json:"why"`
}

// Failures is what is known of failures.
type Failures struct {
	Down []string `json:"down"`
	// DownEnds are the ends of Down.
	DownEnds [][2]string `json:"down_ends"`

	Avoided []string `json:"avoided"`
	Updates *Updates `json:"updates"`
	Paths   []Path   `json:"paths"`
	Blamed  []Blame  `json:"blamed"`
	Late    *Late    `json:"late"`
	Probes  *Probes  `json:"probes"`
}

// Updates is what is known of the switches' messages.
type Updates struct {
	Heard    float64  `json:"heard_s"`
	Down     []string `json:"down"`
	Switches int      `json:"switches"`
	Refused  string   `json:"refused"`
	Silent   string   `json:"silent"`
	Error    string   `json:"error"`
}

// Blame is a place that hurts packets, or several of which one does.
type Blame struct {
	Places []string `json:"places"`
	Kinds  []string `json:"kinds"`
	Why    string   `json:"why"`
	Held   bool     `json:"held"`
	Says   []string `json:"says"`
	Loss   float64  `json:"loss"`
	Lost   int      `json:"lost"`
	Paths  int      `json:"paths"`
}

// Late is where packets take longer than elsewhere.
type Late struct {
	Places []string `json:"places"`
	Kinds  []string `json:"kinds"`
	By     []string `json:"by"`
	Took   float64  `json:"rtt_ms"`
	Others float64  `json:"others_ms"`
	Unsaid int      `json:"by_unsaid"`
}

// Probes counts probes.
type Probes struct {
	Unsent  uint64  `json:"unsent"`
	Denied  *uint64 `json:"denied"` // nil: the daemon does not count them apart
	Watcher struct {
		Sent uint64 `json:"sent"`
	} `json:"watcher"`
}

// Path is the state of a path by its probes. Those with a Bounce are the host's ways up.
type Path struct {
	To     string     `json:"to"`
	Via    netip.Addr `json:"via"`
	Bounce string     `json:"bounce"`
	From   string     `json:"from"`
	State  string     `json:"state"`
	Why    string     `json:"why"`
	RTT    float64    `json:"rtt_ms"`
	RTT50  float64    `json:"rtt_p50_ms"`
	RTT99  float64    `json:"rtt_p99_ms"`
	Loss   float64    `json:"loss"`
	Blamed string     `json:"blamed"` // what explains its state
	Lately *Lately    `json:"lately"`
}

// Lately is what became of a path's probes and packets in the last 10 to 20 s.
type Lately struct {
	Sent uint64 `json:"sent"`
	Lost uint64 `json:"lost"`
	// Times is less where losses came in bursts; nil: not told.
	Times *uint64 `json:"times"`
}

// BGP is what the switches tell by BGP.
type BGP struct {
	Neighbors []struct {
		Neighbor    netip.Addr `json:"neighbor"`
		Established bool       `json:"established"`
	} `json:"neighbors"`
	Doubts []string `json:"doubts"`
}

// Supers says how long super-segments may be.
type Supers struct {
	Bytes int    `json:"bytes"`
	Asked int    `json:"asked"`
	Why   string `json:"why"`
}

// Congestion is what the policy knows of the paths to a rack.
type Congestion struct {
	Paths []struct {
		Bounce netip.Addr `json:"bounce"`
		Known  bool       `json:"known"`
		Queue  uint8      `json:"queue"`
		Meters uint8      `json:"meters"`
	} `json:"paths"`
}

// Part is a part that may say why it is not known or does not work.
type Part struct {
	Error string `json:"error"`
}

// Offload is what the program at the uplink has counted.
type Offload struct {
	Part
	Plain      uint64 `json:"plain"`
	Unattended uint64 `json:"unattended"`
	NoPath     uint64 `json:"no_path"`
	TooLong    uint64 `json:"too_long"`
	Broken     uint64 `json:"broken"`

	Forwarded     uint64 `json:"forwarded"`
	ForwardedLong uint64 `json:"forwarded_long"`

	Bounces []Sent `json:"bounces"`
}

// Sent is what was sent to a bouncing switch, or by a path of a tunnel.
type Sent struct {
	Address netip.Addr `json:"address"`
	Bounce  netip.Addr `json:"bounce"` // the dataplane's word for Address
	Uplink  string     `json:"uplink"`
	Path    int        `json:"path"`
	Packets uint64     `json:"packets"`
	Bytes   uint64     `json:"bytes"`
}

// Dataplane is what the gateway has counted.
type Dataplane struct {
	Paths  []Sent `json:"paths"`
	Tunnel struct {
		UnknownPeer uint64 `json:"unknown_peer"`
		Forged      uint64 `json:"forged"`
	} `json:"tunnel"`
	Refused  uint64 `json:"refused"`
	Handover struct {
		SharePercent *float64 `json:"share_percent"`
	} `json:"handover"`
}

// ParseHost reads a host's status.
func ParseHost(text []byte) (h Host, err error) {
	if err := json.Unmarshal(text, &h); err != nil {
		return h, fmt.Errorf("status: %w", err)
	}
	return h, nil
}
