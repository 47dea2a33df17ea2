package daemon

import (
	"math"
	"net/netip"

	"weft/internal/hostprog"
	"weft/liveness"
	"weft/stack"
	"weft/topoupdate/bgp/learn"
)

// Status is what a daemon says about itself. It leaves out sections that are not in use.
// Counters count from the start, and begin anew where a reload says so.
type Status struct {
	Version       int    `json:"version"`            // StatusVersion
	Mode          string `json:"mode"`               // that runs
	ModeWhy       string `json:"mode_why,omitempty"` // if the configuration says auto
	Encapsulation string `json:"encapsulation"`
	Topology      string `json:"topology,omitempty"`
	Policy        string `json:"policy"`
	Unit          string `json:"unit"` // of the policy, in this fabric
	Address       string `json:"address,omitempty"`
	Address6      string `json:"address6,omitempty"` // if IPv6 packets are carried, too
	Uplink        string `json:"uplink,omitempty"`
	Gateway       string `json:"gateway,omitempty"`
	MTU           int    `json:"mtu"`

	// CongestionControl is that of TCP to CongestionControlPrefixes, or to all of the fabric
	// where these are not given. "": as the kernel has it.
	CongestionControl         string         `json:"congestion_control,omitempty"`
	CongestionControlPrefixes []netip.Prefix `json:"congestion_control_prefixes,omitempty"`

	Process int   `json:"process"`
	Uptime  int64 `json:"uptime_s"` // seconds
	Reloads int   `json:"reloads"`

	// Uplinks are those in use, where there are several. Uplink and Gateway are of one of them.
	Uplinks []UplinkStatus `json:"uplinks,omitempty"`

	// State is StateWorking or StateAway. Trouble says what is wrong at the moment.
	State   string `json:"state"`
	Trouble string `json:"trouble,omitempty"`
	// Repairs counts the changes of others that the daemon has undone; LatestRepairs
	// describes the latest of them.
	Repairs       uint64   `json:"repairs"`
	LatestRepairs []string `json:"latest_repairs,omitempty"`

	// Others lists other owners' programs and filters where weft's programs are. What runs
	// in front of weft's may keep packets from them.
	Others []hostprog.ForeignProgram `json:"others,omitempty"`

	// Racks lists the racks that packets do not reach as they should (plain, in smaller
	// packets, or not by all paths), and says why.
	Racks []RackStatus `json:"racks,omitempty"`

	// Reach counts the racks, and says how the paths to those in use are.
	Reach *ReachStatus `json:"reach,omitempty"` // with probes

	// Behind lists prefixes behind hosts, of which BehindUnnamed are left out.
	Behind        []BehindStatus `json:"behind,omitempty"`
	BehindUnnamed int            `json:"behind_unnamed,omitempty"`

	// Congestion is what the policy knows about the paths to racks in use. Offload says how
	// often the program at the uplink has chosen each path.
	Congestion []stack.Congestion `json:"congestion,omitempty"`
	Samples    *SampleStatus      `json:"samples,omitempty"`

	BGP       *learn.Status     `json:"bgp,omitempty"` // with topology: bgp
	Failures  *FailureStatus    `json:"failures,omitempty"`
	Supers    *SuperStatus      `json:"super_segments,omitempty"` // with super_segment_bytes above 65536
	LateCut   *LateCutStatus    `json:"late_cut,omitempty"`       // in mode offload with a policy of packets
	QCN       any               `json:"qcn,omitempty"`            // pacing.Stats, with qcn.enabled
	Mesh      any               `json:"mesh,omitempty"`           // MeshStatus, with udp.directory
	Scheduler any               `json:"scheduler,omitempty"`      // scheduling.Status, with scheduler.servers
	Devices   map[string]Device `json:"devices,omitempty"`
	Offload   any               `json:"offload,omitempty"`   // hostprog.SprayStats, of all programs since the start
	Steer     any               `json:"steer,omitempty"`     // hostprog.SteerStats
	Order     any               `json:"order,omitempty"`     // hostprog.OrderStats
	Dataplane any               `json:"dataplane,omitempty"` // dataplane.GatewayStats
}

// StatusVersion rises when a key of Status goes or comes to mean something else. New keys do
// not raise it.
const StatusVersion = 1

// The values of State.
const (
	StateWorking = "working"        // all is in place
	StateAway    = "out of the way" // packets go as the kernel's own routes have them
)

// UplinkStatus is one of several uplinks.
type UplinkStatus struct {
	Device  string `json:"device"`
	Switch  string `json:"switch"`
	Gateway string `json:"gateway,omitempty"`
	Up      bool   `json:"up"` // it has a carrier, and its paths are in use
}

// RackStatus is how a rack is reached.
type RackStatus struct {
	Rack   string `json:"rack"`
	Prefix string `json:"prefix"`
	Plain  bool   `json:"plain"`         // as the kernel's own routes have it, for want of proof that the carrier works
	MTU    int    `json:"mtu,omitempty"` // of packets without the outer header, bytes
	Why    string `json:"why,omitempty"`
}

// BehindStatus is a prefix of containers or virtual machines whose packets a host forwards.
type BehindStatus struct {
	Prefix string `json:"prefix"`
	Host   string `json:"host"`
	Rack   string `json:"rack,omitempty"` // the host's; "": the fabric has no such host, and packets go plain
	Own    bool   `json:"own,omitempty"`  // this host
}

// SampleStatus counts the samples of paths' congestion.
type SampleStatus struct {
	Table         any    `json:"table,omitempty"` // luopan.Stats: own samples, and what became of them; under a policy that samples
	Sent          uint64 `json:"sent"`            // own samples
	Bytes         uint64 `json:"bytes"`           // of these, outer headers included
	Decided       uint64 `json:"decided"`         // choices that the program at the uplink was told
	Failed        uint64 `json:"failed"`          // that it did not take, or times that it could not be asked
	PeersAnswered uint64 `json:"peers_answered"`
	PeersRefused  uint64 `json:"peers_refused"` // too many, or by no path between the two
	Forged        uint64 `json:"forged"`        // samples that are none, by their checksum or what they say
	Unasked       uint64 `json:"unasked"`       // answers, while the policy does not sample
	Pathless      uint64 `json:"pathless"`      // own samples of paths that were gone by then
	Unsent        uint64 `json:"unsent"`
	Drops         uint64 `json:"drops"`
}

// SuperStatus says how long super-segments of TCP may be.
type SuperStatus struct {
	Bytes     int    `json:"bytes"`         // now, with IP headers
	Asked     int    `json:"asked"`         // by the configuration
	Why       string `json:"why,omitempty"` // why the one is less than the other
	Fallbacks uint64 `json:"fallbacks"`     // times that they got lost, so that there are none of more than 64 KB any more
}

// LateCutStatus says where super-segments are cut into packets.
type LateCutStatus struct {
	Active bool   `json:"active"`        // at the uplink's egress; else by TCP, which costs more processor time
	Why    string `json:"why,omitempty"` // it is not active
}

// FailureStatus is what the daemon knows about failures.
type FailureStatus struct {
	Down    []string      `json:"down"`              // links that no path is to use
	Ends    [][2]string   `json:"down_ends"`         // of each of Down, the names of both ends, the lower one first
	Avoided []string      `json:"avoided,omitempty"` // paths that one host alone is not sent to by, as "h3.1.3 by c1.1"
	Changes uint64        `json:"changes"`
	Updates any           `json:"updates,omitempty"` // listen.Status
	Probes  any           `json:"probes,omitempty"`  // prober.Stats
	Paths   []PathStatus  `json:"paths,omitempty"`   // that are not simply up
	Blamed  []BlameStatus `json:"blamed,omitempty"`  // what hurts packets, the worst first
	Late    *LateStatus   `json:"late,omitempty"`    // where packets take longer than elsewhere
}

// PathStatus is the state of a path according to its probes.
type PathStatus struct {
	To  string `json:"to"` // own address: the bouncing switch and back
	Via string `json:"via"`
	// Bounce is the bouncing switch's name, if the path is the host's own way to it and back.
	Bounce string  `json:"bounce,omitempty"`
	From   string  `json:"from,omitempty"` // the uplink, where the host has several
	State  string  `json:"state"`
	Why    string  `json:"why,omitempty"`
	RTT    float64 `json:"rtt_ms"`               // smoothed
	RTT50  float64 `json:"rtt_p50_ms,omitempty"` // of the latest 64 round trips; only where Bounce is set
	RTT99  float64 `json:"rtt_p99_ms,omitempty"`
	Loss   float64 `json:"loss"` // part of the latest probes
	Lately Lately  `json:"lately"`
	// Blamed is the first place of the entry of FailureStatus.Blamed that explains Why or Loss.
	Blamed string `json:"blamed,omitempty"`

	from int // which of the host's uplinks
}

// Lately says what became of a path's probes and packets in the last 10 to 20 s. A packet that
// was sent again counts as lost.
type Lately struct {
	Sent uint64 `json:"sent"`
	Lost uint64 `json:"lost"`
	// Times is how many losses one by one would say as much as Lost: less where these came in
	// bursts, as from a queue that was full once, or a machine that stood still.
	Times uint64 `json:"times"`
}

// latelyOf is what liveness says of a path. What it says may be less than 0 for a moment, where
// packets come that were taken for lost.
func latelyOf(l liveness.Lately) Lately {
	whole := func(n float32) uint64 { return uint64(max(0, math.Round(float64(n)))) }
	times := l.Lost
	if l.Lost > 0 && l.Slots > 0 {
		times /= max(1, (l.Squares-l.Lost*l.Lost/l.Slots)/l.Lost)
	}
	return Lately{whole(l.Sent), whole(l.Lost), whole(times)}
}

// Device says which offloads the kernel gave a device, and how many packets the device has
// lost.
type Device struct {
	Offloads string `json:"offloads"`
	Drops    uint64 `json:"drops"`
}

// nameUplinks says of each path which of several uplinks it begins with.
func (s *FailureStatus) nameUplinks(all []UplinkStatus) {
	for i := range s.Paths {
		if p := &s.Paths[i]; p.from < len(all) {
			p.From = all[p.from].Device
		}
	}
}
