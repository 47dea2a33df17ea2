package dataplane

import (
	"cmp"
	"net/netip"
	"slices"
	"time"

	"weft/internal/paths"
	"weft/luopan"
	"weft/topology"
)

// Congestion is what a congestion-aware policy knows of the paths to one rack; with
// conga, to one host. It is a snapshot.
type Congestion struct {
	Rack   string       `json:"rack"`           // name of its edge switch
	Host   string       `json:"host,omitempty"` // with conga: the name of the host that the reports are about
	Prefix netip.Prefix `json:"prefix"`         // of its hosts' addresses
	// Metric is the metric of the samples, as luopan.Metric names it; "" without samples.
	Metric    string           `json:"metric,omitempty"`
	RTT       time.Duration    `json:"rtt_ns,omitempty"`    // of samples, smoothed
	Expiry    time.Duration    `json:"expiry_ns,omitempty"` // how long a sample is used, now
	Unsampled uint64           `json:"unsampled,omitempty"` // units without a sample
	Paths     []PathCongestion `json:"paths,omitempty"`     // the known ones, ascending
	Tags      []TagCongestion  `json:"tags,omitempty"`      // of conga, ascending
}

// PathCongestion is what samples say of a path.
type PathCongestion struct {
	Path    int        `json:"path"`
	Bounce  netip.Addr `json:"bounce"` // address of its bouncing switch
	Live    bool       `json:"live"`
	Choices uint64     `json:"choices"` // units that took it, including those without a sample
	// Known says that an answer in use sets the fields below. Best says that the next
	// units take this path.
	Known  bool          `json:"known"`
	Best   bool          `json:"best,omitempty"`
	Age    time.Duration `json:"age_ns,omitempty"`
	Queue  uint8         `json:"queue,omitempty"`  // in encap.QCMUnit, if Meters is not 0
	Meters uint8         `json:"meters,omitempty"` // switches that have added to Queue
	Marked bool          `json:"marked,omitempty"`
	RTT    time.Duration `json:"rtt_ns,omitempty"`
	Sent   int64         `json:"sent,omitempty"` // bytes sent by it since
}

// PathOf says what a sample tells of its path; best says that units take it. Live, Bounce
// and Choices are left to the caller.
func PathOf(s luopan.Sample, best bool) PathCongestion {
	return PathCongestion{Path: s.Path, Known: true, Best: best, Age: s.Age, Queue: s.Queue, Meters: s.Meters, Marked: s.Marked, RTT: s.RTT, Sent: s.Sent}
}

// TagCongestion is what CONGA knows of the paths that share a tag: one path if there are
// no more than 16, else all paths by one uplink of the edge switch.
type TagCongestion struct {
	Tag     uint8         `json:"tag"`
	Paths   []int         `json:"paths"`
	Local   uint8         `json:"local"`  // 0 to 7, of what this Host has sent by the tag, to all racks
	Remote  uint8         `json:"remote"` // 0 to 7, as the host has reported, aged
	Known   bool          `json:"known"`  // there was a report, Age ago
	Age     time.Duration `json:"age_ns,omitempty"`
	Choices uint64        `json:"choices"` // flowlets
}

// describe adds what the topology knows of the paths.
func (c *Congestion) describe(set topology.PathSet) {
	c.Paths = slices.DeleteFunc(c.Paths, func(p PathCongestion) bool { return p.Path >= set.Count() })
	for i := range c.Paths {
		p := &c.Paths[i]
		_, p.Live = slices.BinarySearch(set.Live, p.Path)
		p.Bounce = set.Addr(p.Path)
	}
	slices.SortFunc(c.Paths, func(a, b PathCongestion) int { return cmp.Compare(a.Path, b.Path) })
	for i := range c.Tags {
		for n := range set.Count() {
			if paths.Tag(set, n) == c.Tags[i].Tag {
				c.Tags[i].Paths = append(c.Tags[i].Paths, n)
			}
		}
	}
}
