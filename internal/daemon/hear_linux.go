package daemon

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"strings"

	"weft/liveness"
	"weft/topology"
)

// hear has packets go by the latest news.
func (d *daemon) hear(ctx context.Context) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.working {
		return
	}
	by := d.hearAll()
	if by != d.config.encapsulation() {
		d.changeOver(ctx, by)
		return
	}
	if err := d.goBy(by); err != nil {
		d.takeAway(fmt.Sprintf("the paths cannot be changed: %v", err))
	}
}

// hearAll takes the latest news, and says by which encapsulation packets are to be
// carried from now on: the first one of the configuration that works towards any
// rack; while there is none, the one that they are carried by.
func (d *daemon) hearAll() (by string) {
	if d.heard == nil {
		d.heard = make(map[string]news)
	}
	maps.Copy(d.heard, d.inbox.take())
	for _, e := range d.config.carried() {
		if n, ok := d.heard[e]; ok && n.carriage.Used() {
			return e
		}
	}
	return d.config.encapsulation()
}

// goBy has packets go by what is known of the paths by an encapsulation.
func (d *daemon) goBy(by string) error {
	n, ok := d.heard[by]
	if !ok {
		n, ok = d.heard[""]
	}
	if !ok {
		return nil
	}
	if n.topology != d.topology {
		if err := d.setTopology(n.topology); err != nil {
			return err
		}
	}
	return d.setCarriage(n.carriage)
}

// changeOver has packets carried by another encapsulation: all that carries them is
// made anew. Connections live on, plain for the moment.
func (d *daemon) changeOver(ctx context.Context, by string) {
	d.log.Printf("carried by %s from now on, no more by %s", by, d.config.encapsulation())
	if err := d.takeDown(d.config.Drain); err != nil {
		d.log.Printf("not all was undone: %v", err)
	}
	d.config = d.config.over(by)
	if err := d.bringUp(ctx); err != nil {
		d.takeDown(0)
		d.trouble = trouble{why: err.Error()}
		d.log.Printf("out of the way, packets go as the kernel's routes have them: %v", err)
	}
}

// setCarriage has packets carried to those racks only towards which it is proved, and
// of a size that arrives there.
func (d *daemon) setCarriage(c *liveness.Carriage) (err error) {
	if c == d.carriage {
		return nil
	}
	if d.spray != nil && d.config.proves() {
		err = d.spray.SetPlain(func(rack netip.Prefix) bool {
			edge, ok := d.edgeOf(rack)
			return ok && c.Plain(edge)
		})
	}
	if d.receiver != nil {
		d.receiver.SetCarriage(c)
	}
	d.place.narrow = d.narrow(c)
	plan, err2 := d.config.plan(d.place)
	if err2 == nil {
		_, err2 = d.setup.Repair(plan)
	}
	if err = errors.Join(err, err2); err != nil {
		return err
	}
	for _, change := range c.Changes(d.carriage) {
		d.log.Print(d.tellOf(change))
	}
	d.carriage = c
	return nil
}

// narrow lists the racks to which packets of the usual size do not arrive.
func (d *daemon) narrow(c *liveness.Carriage) map[netip.Prefix]int {
	usual := d.place.mtu - d.config.overhead()
	var narrow map[netip.Prefix]int
	for _, edge := range c.Racks() {
		if mtu := c.MTU(edge); mtu > 0 && mtu < usual {
			if narrow == nil {
				narrow = make(map[netip.Prefix]int)
			}
			narrow[rackPrefix(d.topology, edge)] = mtu
		}
	}
	return narrow
}

// rackPrefix is the prefix of an edge switch's rack.
func rackPrefix(t *topology.Topology, edge topology.NodeID) netip.Prefix {
	p, _ := t.Node(edge).Addr.Prefix(24)
	return p
}

// edgeOf is the edge switch of a rack.
func (d *daemon) edgeOf(rack netip.Prefix) (topology.NodeID, bool) {
	id, ok := d.topology.ByAddr(rack.Addr().Next())
	return id, ok && d.topology.Node(id).Layer == topology.LayerEdge
}

// maxNamed is how many racks a message names.
const maxNamed = 4

// tellOf is the line of the log about racks that are reached otherwise now.
func (d *daemon) tellOf(c liveness.Change) string {
	var names []string
	for _, edge := range c.Racks[:min(len(c.Racks), maxNamed)] {
		names = append(names, d.topology.Node(edge).Name)
	}
	racks := "racks " + strings.Join(names, ", ")
	if more := len(c.Racks) - len(names); more > 0 {
		racks += fmt.Sprintf(" and %d more", more)
	}
	switch {
	case c.Plain:
		racks += ": packets go plain, as the kernel's routes have them"
	case c.MTU > 0 && c.MTU < d.place.mtu-d.config.overhead():
		racks += fmt.Sprintf(": carried by %s, in packets of at most %d bytes", d.config.encapsulation(), c.MTU)
	default:
		racks += ": carried by " + d.config.encapsulation()
	}
	if c.Why != "" {
		racks += "; " + c.Why
	}
	return racks
}
