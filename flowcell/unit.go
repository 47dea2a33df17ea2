package flowcell

// Unit is when a sender chooses a path anew.
type Unit uint8

// The units.
const (
	UnitPacket Unit = iota // every packet
	UnitFlow               // never again within a flow
)

func (u Unit) String() string {
	if u == UnitFlow {
		return "flow"
	}
	return "packet"
}
