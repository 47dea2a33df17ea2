package daemon

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"weft/internal/config"
	"weft/internal/paths"
	"weft/internal/service"
	"weft/resequencer"
	"weft/topology"
	"weft/topology/graph"
)

// Bounds of the configuration.
const (
	minMTU    = 596  // 576 of RFC 791 and an outer header
	minMTU6   = 1320 // 1280 of RFC 8200, without which a device has no IPv6, and SRv6's
	maxMTU    = 65535
	maxQueues = 255
	maxPaths  = 256
	maxPeers  = 1024 // each is a rule of the kernel's, which tries one after the other
	maxDrain  = 10 * time.Second
)

// validate checks what can be checked without looking at the machine, and
// resolves topology and keys. The first error names its key and line.
func (c *Config) validate() error {
	for _, check := range []func() error{c.checkMode, c.checkFabric, c.checkPolicy, c.checkSupers, c.checkFailures, c.checkResequencer, c.checkTUN, c.checkUDP, c.checkRest, c.checkDatagrams, c.checkBehind, c.checkCongestion, c.checkQCN, c.checkScheduler} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// oneOf says what is wrong with a word that must be one of a few.
func (c *Config) oneOf(key, value string, known ...string) error {
	if slices.Contains(known, value) {
		return nil
	}
	return c.lines.Errorf(key, "%q is unknown; %s", value, "use "+strings.Join(known, ", "))
}

func (c *Config) between(key string, n, least, most int) error {
	if n >= least && n <= most {
		return nil
	}
	return c.lines.Errorf(key, "is %d, must be from %d to %d", n, least, most)
}

func (c *Config) checkMode() error {
	if err := c.oneOf("mode", c.Mode, ModeAuto, ModeGateway, ModeOffload); err != nil {
		return err
	}
	if err := c.checkEncapsulation(); err != nil {
		return err
	}
	if c.tunnels() && c.Mode == ModeOffload {
		return c.lines.Errorf("encapsulation", "udp passes through weft; use mode: auto or gateway, or encapsulation: ipip or srv6")
	}
	return nil
}

// checkEncapsulation checks the list: what comes first is preferred.
func (c *Config) checkEncapsulation() error {
	if len(c.Encapsulation) == 0 {
		return c.lines.Errorf("encapsulation", "is an empty list; name ipip, srv6 or udp")
	}
	for i, e := range c.Encapsulation {
		key := fmt.Sprintf("encapsulation[%d]", i)
		if err := c.oneOf(key, e, EncapIPIP, EncapSRv6, EncapUDP, EncapPlain); err != nil {
			return err
		}
		switch {
		case slices.Contains(c.Encapsulation[:i], e):
			return c.lines.Errorf(key, "%s is in the list twice; remove one", e)
		case e == EncapUDP && len(c.Encapsulation) > 1:
			return c.lines.Errorf(key, "udp goes to peers, not through a fabric, and must be alone")
		case e == EncapPlain && i == 0:
			return c.lines.Errorf(key, "plain is what is left when nothing else works; name ipip or srv6 before it, or do not run weft host")
		case e == EncapPlain && i < len(c.Encapsulation)-1:
			return c.lines.Errorf(key, "plain always works, so that nothing behind it is ever used; put it last")
		case e == EncapPlain && c.Require:
			return c.lines.Errorf(key, "plain is given, and require: true forbids it; remove one")
		}
	}
	if c.Require && !c.tunnels() && !c.Failures.Probes {
		return c.lines.Errorf("require", "is true, and failures.probes false: without probes nothing is ever given up; remove one")
	}
	return nil
}

// labels reports whether labels may be used.
func (c *Config) labels() bool { return slices.Contains(c.Encapsulation, EncapSRv6) }

// minMTU is the least MTU of the network, in bytes.
func (c *Config) minMTU() int {
	if c.labels() {
		return minMTU6
	}
	return minMTU
}

func (c *Config) checkFabric() (err error) {
	var g *graph.Graph
	switch {
	case c.learns():
		if err := c.checkBGP(); err != nil {
			return err
		}
	default:
		if c.fabric, g, err = config.Fabric(c.Topology); err != nil {
			return c.lines.Errorf("topology", "%w", err)
		}
	}
	if g != nil {
		if err := c.checkGraph(g); err != nil {
			return err
		}
	}
	if err := c.checkOuter(); err != nil {
		return err
	}
	if c.Gateway.IsValid() && !c.Gateway.Is4() {
		return c.lines.Errorf("gateway", "%s is not IPv4, and the fabric is; write an IPv4 address, or auto", c.Gateway)
	}
	if !c.Address.IsValid() || c.tunnels() || c.learns() {
		return nil
	}
	return c.checkPlace()
}

// checkOuter checks that packets can have the outer headers that carry them.
func (c *Config) checkOuter() error {
	if c.MTU != 0 {
		if err := c.between("mtu", c.MTU, c.minMTU(), maxMTU); err != nil {
			return err
		}
	}
	if c.labels() && c.fabric != nil {
		if err := paths.CheckSRv6(c.fabric); err != nil {
			return c.lines.Errorf("encapsulation", "srv6: %w; use ipip", err)
		}
	}
	return nil
}

// checkPlace checks that Address is a host's in the fabric.
func (c *Config) checkPlace() error {
	id, ok := c.fabric.ByAddr(c.Address)
	if !ok || c.fabric.Node(id).Layer != topology.LayerHost || c.fabric.Node(id).Addr != c.Address {
		return c.lines.Errorf("address", "%s is no host of %s; its hosts begin with %s", c.Address, c.fabric, c.fabric.Node(0).Addr)
	}
	return nil
}

func (c *Config) checkResequencer() error {
	r := c.Resequencer
	if _, err := resequencer.ParseDiscipline(r.Discipline); err != nil {
		return c.lines.Errorf("resequencer.discipline", "%w", err)
	}
	for _, f := range []struct {
		key   string
		value time.Duration
	}{{"hold", r.Hold}, {"min_hold", r.MinHold}, {"merge", r.Merge}} {
		if f.value <= 0 || f.value > resequencer.MaxHold {
			return c.lines.Errorf("resequencer."+f.key, "is %v, must be more than 0 and at most %v", f.value, resequencer.MaxHold)
		}
	}
	if r.MinHold > r.Hold {
		return c.lines.Errorf("resequencer.min_hold", "is %v, more than hold, %v; lower it or raise hold", r.MinHold, r.Hold)
	}
	for _, f := range []struct {
		key   string
		value int
	}{
		{"flow_packets", r.FlowPackets}, {"flow_bytes", r.FlowBytes},
		{"peer_packets", r.PeerPackets}, {"peer_bytes", r.PeerBytes},
		{"total_packets", r.TotalPackets}, {"total_bytes", r.TotalBytes},
		{"flows", r.Flows},
	} {
		if err := c.between("resequencer."+f.key, f.value, 1, 1<<31-1); err != nil {
			return err
		}
	}
	return nil
}

func (c *Config) checkTUN() error {
	if err := c.checkDevice("tun.name", c.TUN.Name); err != nil {
		return err
	}
	for i, name := range c.Uplink {
		key := "uplink"
		if len(c.Uplink) > 1 {
			key = fmt.Sprintf("uplink[%d]", i)
		}
		if err := c.checkDevice(key, name); err != nil {
			return err
		}
		if slices.Contains(c.Uplink[:i], name) {
			return c.lines.Errorf(key, "%s is in the list twice; remove one", name)
		}
	}
	if err := c.checkUplinks(); err != nil {
		return err
	}
	if slices.Contains(c.Uplink, c.TUN.Name) {
		return c.lines.Errorf("tun.name", "%s is the uplink; choose another name", c.TUN.Name)
	}
	if len(c.TUN.Addresses) > 0 && !c.tunnels() {
		return c.lines.Errorf("tun.addresses", "are for encapsulation: udp; otherwise programs use the host's own address")
	}
	return c.between("tun.queues", c.TUN.Queues, 1, maxQueues)
}

// maxDeviceName is the kernel's IFNAMSIZ less the terminating zero.
const maxDeviceName = 15

func (c *Config) checkDevice(key, name string) error {
	if name == "" || len(name) > maxDeviceName || strings.ContainsAny(name, "/ \t\n") || name == "." || name == ".." {
		return c.lines.Errorf(key, "%q is not a device's name: 1 to %d bytes without slashes and blanks", name, maxDeviceName)
	}
	return nil
}

func (c *Config) checkRest() error {
	switch {
	case c.Drain < 0 || c.Drain > maxDrain:
		return c.lines.Errorf("drain", "is %v, must be from 0s to %v", c.Drain, maxDrain)
	case c.User == "":
		return c.lines.Errorf("user", "is empty; name a user, auto for weft's own, or root to keep that")
	case c.Resequence == config.Yes && c.Mode == ModeGateway:
		return c.lines.Errorf("resequence", "is for mode: auto or offload; mode gateway always does")
	}
	if err := service.CheckStatusPath(c.Status); err != nil {
		return c.lines.Errorf("status", "%w", err)
	}
	if key, err := c.Metrics.Check(); err != nil {
		return c.lines.Errorf(key, "%w", err)
	}
	if key, err := c.Log.Check(); err != nil {
		return c.lines.Errorf("log."+key, "%w", err)
	}
	return nil
}
