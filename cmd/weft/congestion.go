package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strings"
	"time"

	"weft/internal/table"
	"weft/stack"
)

// liveStatus is what a running host's status says of its paths.
type liveStatus struct {
	Policy        string             `json:"policy"`
	Encapsulation string             `json:"encapsulation"`
	Congestion    []stack.Congestion `json:"congestion"`
	Offload       *struct {
		Bounces []bounceCount `json:"bounces"`
	} `json:"offload"`
	Dataplane *struct {
		Paths []bounceCount `json:"paths"` // stack.PathStats
	} `json:"dataplane"`
}

// bounceCount is what was sent to a bouncing switch, or by labels through it.
type bounceCount struct {
	Address   netip.Addr `json:"address"`
	Bounce    netip.Addr `json:"bounce,omitzero"` // in place of Address, where the dataplane says so
	Uplink    string     `json:"uplink,omitempty"`
	Packets   uint64     `json:"packets"`
	Bytes     uint64     `json:"bytes"`
	Flowcells uint64     `json:"flowcells"`
}

func parseLive(text []byte) (s liveStatus, err error) {
	if isSwitchStatus(text) {
		return s, fmt.Errorf("this is a switch's status; paths are a host's: --socket names the socket of a weft host")
	}
	if err := json.Unmarshal(text, &s); err != nil {
		return s, fmt.Errorf("status: %w", err)
	}
	return s, nil
}

// bounces is what was sent by whom; whom nothing was sent by is left out.
func (s liveStatus) bounces() (all []bounceCount) {
	var from []bounceCount
	if s.Dataplane != nil {
		from = append(from, s.Dataplane.Paths...)
	}
	if s.Offload != nil {
		from = append(from, s.Offload.Bounces...)
	}
	for _, b := range from {
		if b.Bounce.IsValid() {
			b.Address, b.Bounce = b.Bounce, netip.Addr{}
		}
		if b.Packets > 0 && b.Address.IsValid() {
			all = append(all, b)
		}
	}
	return all
}

// printCongestion prints what a policy knows of the paths to racks.
func printCongestion(w io.Writer, racks []stack.Congestion) error {
	for _, c := range racks {
		to := c.Rack
		if c.Host != "" {
			to = c.Host + " in " + to
		}
		fmt.Fprintf(w, "\nto %s (%s): %s\n", to, c.Prefix, describeRack(c))
		t := table.NewWriter(w, -1)
		if len(c.Paths) > 0 {
			fmt.Fprintln(t, "path\tby\tstate\tchosen\tcongestion\tround trip\tage\tsent since")
		}
		counted := slices.ContainsFunc(c.Paths, func(p stack.PathCongestion) bool { return p.Choices > 0 })
		for _, p := range c.Paths {
			chosen := "-" // by the uplink's program, which counts by switch: see printBounces
			if counted {
				chosen = fmt.Sprint(p.Choices)
			}
			fmt.Fprintf(t, "%d\t%v\t%s\t%s\t%s\n", p.Path, p.Bounce, pathState(p), chosen, sampleColumns(p))
		}
		if len(c.Tags) > 0 {
			if err := t.Flush(); err != nil {
				return err
			}
			fmt.Fprintln(t, "tag\tpaths\tchosen\tlocal\tremote\tage")
		}
		for _, g := range c.Tags {
			remote, age := "-", "-"
			if g.Known {
				remote, age = fmt.Sprint(g.Remote), shorter(g.Age)
			}
			fmt.Fprintf(t, "%d\t%s\t%d\t%d\t%s\t%s\n", g.Tag, strings.Trim(fmt.Sprint(g.Paths), "[]"), g.Choices, g.Local, remote, age)
		}
		if err := t.Flush(); err != nil {
			return err
		}
	}
	return nil
}

func describeRack(c stack.Congestion) string {
	var words []string
	switch {
	case c.Metric != "":
		words = append(words, "by "+c.Metric)
	case len(c.Tags) > 0:
		words = append(words, "by what receivers report")
	default:
		words = append(words, "nothing is known")
	}
	if c.RTT > 0 {
		words = append(words, "round trip "+shorter(c.RTT))
	}
	if c.Expiry > 0 {
		words = append(words, "good for "+shorter(c.Expiry))
	}
	if c.Unsampled > 0 {
		words = append(words, fmt.Sprintf("%d without a sample", c.Unsampled))
	}
	return strings.Join(words, ", ")
}

func pathState(p stack.PathCongestion) string {
	switch {
	case !p.Live:
		return "down"
	case p.Best:
		return "best"
	case p.Known:
		return "sampled"
	}
	return "-"
}

// sampleColumns are the metric, the round trip, the age, and what was sent since.
func sampleColumns(p stack.PathCongestion) string {
	if !p.Known {
		return "-\t-\t-\t-"
	}
	metric := "not metered"
	if p.Meters > 0 {
		metric = fmt.Sprintf("queue %d by %d switches", p.Queue, p.Meters)
	}
	if p.Marked {
		metric += ", marked"
	}
	return fmt.Sprintf("%s\t%s\t%s\t%d", metric, shorter(p.RTT), shorter(p.Age), p.Sent)
}

// shorter is a time to three digits or so, as people read it.
func shorter(d time.Duration) string {
	for unit := time.Microsecond; unit < time.Hour; unit *= 10 {
		if d < 1000*unit {
			return d.Round(unit).String()
		}
	}
	return d.Round(time.Second).String()
}

// printBounces prints what was sent to each bouncing switch.
func printBounces(w io.Writer, all []bounceCount) error {
	if len(all) == 0 {
		return nil
	}
	t := table.NewWriter(w, -1)
	fmt.Fprintln(t, "\nby\tpackets\tbytes\tflowcells")
	for _, b := range all {
		by := b.Address.String()
		if b.Uplink != "" {
			by += " from " + b.Uplink
		}
		fmt.Fprintf(t, "%s\t%d\t%d\t%d\n", by, b.Packets, b.Bytes, b.Flowcells)
	}
	return t.Flush()
}
