package daemon

import (
	"fmt"

	"weft/flowcell"
	"weft/internal/config"
)

// settled is what mode auto has become, and why.
type settled struct{ mode, why string }

// settle decides what mode auto is. refused says what the kernel lacks for restoring the order
// of what arrives without taking all of it to the daemon; nil if it lacks nothing, or nobody
// has asked it yet.
func (c *Config) settle(refused error) {
	switch p := c.policy(); {
	case c.Mode != ModeAuto:
		c.auto = settled{}
	case c.tunnels():
		c.auto = settled{ModeGateway, "a tunnel passes through weft"}
	case !p.AtUplink():
		c.auto = settled{ModeGateway, fmt.Sprintf("policy %s is decided packet by packet in weft", p.Name)}
	default:
		c.auto = settled{ModeOffload, fmt.Sprintf("each %v takes a path of its own, which receivers' TCP bears", p.Unit)}
		switch {
		case !c.receives():
		case refused != nil:
			c.auto = settled{ModeGateway, fmt.Sprintf("the kernel cannot restore the order: %v", refused)}
		default:
			c.auto.why = "the kernel keeps what is in order, and weft restores the order of the rest"
		}
	}
}

// mode is what the daemon does: Mode, or what mode auto has become.
func (c *Config) mode() string {
	if c.Mode == ModeAuto {
		return c.auto.mode
	}
	return c.Mode
}

// modeText is mode, for people.
func (c *Config) modeText() string {
	if c.Mode == ModeAuto {
		return c.mode() + " (auto)"
	}
	return c.Mode
}

// offloads reports whether the kernel's TCP leaves without passing through weft.
func (c *Config) offloads() bool { return c.mode() == ModeOffload }

// needsOrder reports whether TCP does badly with what the program at the uplink sends unless
// receivers restore the order. Flowlets are in order by themselves: the pause between two is
// longer than the paths' difference in delay.
func (c *Config) needsOrder() bool { return c.uplinkPolicy().Unit.Kind == flowcell.UnitFlowcell }

// gainsOrder reports whether mode auto restores the order although TCP often does without it.
// TCP bears the disorder of packets while their paths take about equally long. A path that is
// late by more than a quarter of the shortest round trip has it take for lost what is late (RACK,
// RFC 8985 §6.2). Where packets are the unit that suits the links, processors have time to spare
// for it.
func (c *Config) gainsOrder() bool {
	return c.Mode == ModeAuto && !c.tunnels() && c.perPacket() && flowcell.UnitAt(c.rate()).Kind == flowcell.UnitPacket
}

// wantsOrder reports whether, in mode offload, weft is to restore the order of what arrives. It
// can do so at one uplink only. Where the configuration leaves the choice, it does so if the
// policy or a list of datagrams needs it: the other hosts are taken to have the same. Mode auto
// then uses one uplink, and mode offload all that there are. It also does so if the policy gains
// by it and there is one uplink.
func (c *Config) wantsOrder() bool {
	all := len(c.Uplink) == 0 && c.fabric != nil && len(c.fabric.Uplinks()) > 1
	switch {
	case len(c.Uplink) > 1:
		return c.Resequence.Or(false)
	case c.needsOrder() || len(c.Datagrams) > 0:
		return c.Resequence.Or(!all || c.Mode == ModeAuto)
	}
	return c.Resequence.Or(c.gainsOrder() && !all)
}

// mustOrder reports whether weft would rather not begin than leave out what wantsOrder says.
func (c *Config) mustOrder() bool {
	return c.needsOrder() || len(c.Datagrams) > 0 || c.Resequence == config.Yes
}

// resequences reports whether weft does so. A daemon that has begun goes on as it has begun.
func (c *Config) resequences() bool { return c.order.Or(c.wantsOrder()) }

// begin settles what a daemon that begins does from now on. refused is that of settle.
func (c *Config) begin(refused func() error) {
	c.order = config.Auto
	var why error
	if c.settle(nil); c.Mode == ModeAuto && c.offloads() && c.receives() {
		why = refused()
	}
	wants := c.wantsOrder() && (why == nil || c.mustOrder())
	if c.order = config.No; wants {
		c.order = config.Yes
	}
	c.settle(why)
}

// receives reports whether weft restores the order of what arrives.
func (c *Config) receives() bool { return !c.offloads() || c.resequences() }

// unordered reports whether receivers that restore no order get packets out of it. Where
// nobody says whether the receivers do, they are taken to do what this host does.
func (c *Config) unordered() bool {
	return c.offloads() && c.needsOrder() && !c.ReceiversResequence.Or(c.resequences())
}
