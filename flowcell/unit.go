package flowcell

import (
	"fmt"
	"time"
)

// UnitKind is the kind of unit into which a sender cuts a flow. Each unit takes one path.
type UnitKind uint8

// The kinds.
const (
	UnitPacket   UnitKind = iota // every packet
	UnitFlowcell                 // a bounded number of bytes (Presto; Luopan §2.1)
	UnitFlowlet                  // packets without a long pause between them (CONGA §2.6, LetFlow)
	UnitFlow                     // the whole flow
)

// Defaults of a Unit.
const (
	FlowcellBytes = 64 << 10               // Presto's: the largest super-segment
	FlowletGap    = 500 * time.Microsecond // CONGA §3.6
)

// Unit is a kind and its measure. It is a comparable value.
type Unit struct {
	Kind  UnitKind
	Bytes int           // TCP payload that a flowcell holds at most; other kinds: 0
	Gap   time.Duration // pauses longer than this end a flowlet; other kinds: 0
}

func (u Unit) String() string {
	switch u.Kind {
	case UnitFlowcell:
		if u.Bytes%1024 == 0 {
			return fmt.Sprintf("flowcell of %d KB", u.Bytes/1024)
		}
		return fmt.Sprintf("flowcell of %d bytes", u.Bytes)
	case UnitFlowlet:
		return fmt.Sprintf("flowlet between pauses of %v", u.Gap)
	case UnitFlow:
		return "flow"
	}
	return "packet"
}

// Cuts reports whether a flow's packets must pass a Cutter to tell where a unit
// begins. If not, every packet begins one, or only the first.
func (u Unit) Cuts() bool { return u.Kind == UnitFlowcell || u.Kind == UnitFlowlet }

// Numbers reports whether packets carry the Number of their unit. Only
// flowcells do: if every packet were a cell, a window would hold more cells
// than there are numbers.
func (u Unit) Numbers() bool { return u.Kind == UnitFlowcell }
