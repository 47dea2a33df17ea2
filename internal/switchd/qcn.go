package switchd

import (
	"strings"

	"weft/fabric"
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
