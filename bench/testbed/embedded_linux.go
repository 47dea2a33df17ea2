package testbed

import (
	"context"
	"errors"
	"fmt"
	"time"

	"weft/lab"
	"weft/stack"
	"weft/topology"
	"weft/uplink"
)

// EmbeddedHost is a host of a lab with an embedded Host, of this configuration.
type EmbeddedHost struct {
	ID     topology.NodeID // in the lab
	Name   string
	Config stack.Config
}

// Embedded is a running embedded Host on the fast device at each host of a lab. The caller
// closes the sessions first.
type Embedded struct {
	list  []EmbeddedHost
	hosts []*stack.Host
}

// StartEmbedded starts one at all hosts. On an error nothing runs.
func StartEmbedded(l *lab.Lab, list []EmbeddedHost) (*Embedded, error) {
	e := &Embedded{list: list}
	for _, h := range list {
		err := l.Do(h.ID, func() error {
			host, _, err := uplink.NewHost(h.Config, uplink.Options{})
			if err == nil {
				e.hosts = append(e.hosts, host)
			}
			return err
		})
		if err != nil {
			return nil, errors.Join(fmt.Errorf("%s: %w", h.Name, err), e.Close())
		}
	}
	return e, nil
}

// Await waits until each Host carries packets of a family to all racks: none goes plain for
// want of proof.
func (e *Embedded) Await(ctx context.Context, six bool) error {
	ctx, cancel := context.WithTimeout(ctx, daemonsLimit)
	defer cancel()
	for i, h := range e.hosts {
		for why := plainTo(h, six); why != ""; why = plainTo(h, six) {
			select {
			case <-ctx.Done():
				return fmt.Errorf("%s: not within %v: packets go plain %s", e.list[i].Name, daemonsLimit, why)
			case <-time.After(50 * time.Millisecond):
			}
		}
	}
	return nil
}

// plainTo says to which rack a Host's packets go plain, and why; "" if to none.
func plainTo(h *stack.Host, six bool) string {
	t, c := h.Topology(), h.Carriage()
	if six {
		t, c = h.Topology6(), h.Carriage6()
	}
	for edge := range t.Racks() {
		if !t.Paths(0, edge).Direct() && c.Plain(edge) {
			return fmt.Sprintf("to %v: %s", t.RackOf(edge), c.Why(edge))
		}
	}
	return ""
}

// Session has the TCP of the Hosts, by their addresses of a family. It counts retransmissions,
// and no links.
func (e *Embedded) Session(six bool) *Session {
	before := Count(e.hosts)
	s := &Session{Stacks: e.hosts, close: func() error { return nil }}
	for _, h := range e.hosts {
		a := h.Address()
		if six {
			a = h.Address6()
		}
		s.Hosts = append(s.Hosts, Host{h, a.String()})
	}
	s.counters = func() (Counters, error) {
		c := Count(e.hosts)
		c.Retransmits -= before.Retransmits
		c.OutOfOrderBefore -= before.OutOfOrderBefore
		c.OutOfOrderAfter -= before.OutOfOrderAfter
		return c, nil
	}
	return s
}

// Close ends the Hosts.
func (e *Embedded) Close() (err error) {
	for _, h := range e.hosts {
		err = errors.Join(err, h.Close())
	}
	return err
}
