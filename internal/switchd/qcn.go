package switchd

import (
	"net/netip"
	"slices"
	"strings"

	"weft/fabric"
	"weft/topology"
)

// QCN is fabric.QCN.
type QCN struct {
	Target  fabric.QueueLength `yaml:"target"` // 0: there is none
	Weight  float64            `yaml:"weight"`
	MinP    float64            `yaml:"min_p"`
	MaxP    float64            `yaml:"max_p"`
	Plateau int                `yaml:"plateau"`
}

// on reports whether the ports have congestion points.
func (q QCN) on() bool { return q.Target != fabric.QueueLength{} }

// fabric returns what QCN is to the ports.
func (q QCN) fabric() fabric.QCN {
	if !q.on() {
		return fabric.QCN{}
	}
	return fabric.QCN{Target: q.Target, Weight: q.Weight, MinP: q.MinP, MaxP: q.MaxP, Plateau: q.Plateau}
}

// checkQCN checks what does not depend on the ports.
func (f *File) checkQCN() error {
	q := f.Meter.QCN
	if q.on() && f.Meter.Enabled && len(f.Keys) == 0 {
		return f.lines.Errorf("meter.qcn.target", "is set without keys, and hosts believe signed messages alone; give keys the fabric's keys, or set it to 0")
	}
	if !q.on() {
		q.Target.Bytes = 1 // so that the other keys are checked
	}
	return f.qcnError(q.fabric().Check())
}

// qcnError names the key of a field of fabric.QCN that err is about. It is nil if err is
// about none.
func (f *File) qcnError(err error) error {
	if err == nil {
		return nil
	}
	for _, field := range []struct{ name, key string }{{"QCN.Target ", "target"}, {"QCN.Weight ", "weight"}, {"QCN.MinP ", "min_p"}, {"QCN.MaxP ", "max_p"}, {"QCN.Plateau ", "plateau"}} {
		if strings.Contains(err.Error(), field.name) {
			return f.lines.Errorf("meter.qcn."+field.key, "%w", err)
		}
	}
	return nil
}

// sends says of a source and a port of a switch whether a packet of the source can leave by
// the port: the source is a host, and the way to it is not by that port. Packets go up and
// then down, so what comes from a rack or pod does not go back there, and what goes up is from
// below. A host that forges the source of another rack, and whose packets come down with those
// of that rack, passes: only its own edge switch could know.
func sends(t *topology.Topology, self topology.NodeID, ports []string) func(source netip.Addr, port string) bool {
	routes := t.Routes(self)
	return func(source netip.Addr, port string) bool {
		id, ok := t.ByAddr(source)
		by := slices.Index(ports, port)
		if !ok || t.Node(id).Layer != topology.LayerHost || by < 0 {
			return false
		}
		bits, back := -1, false
		for _, r := range routes {
			if r.Virtual == 0 && r.Prefix.Contains(source) && r.Prefix.Bits() > bits {
				bits, back = r.Prefix.Bits(), slices.Contains(r.Ports, by)
			}
		}
		return !back
	}
}
