package resequencer

import (
	"fmt"
	"strings"
	"time"
)

// Discipline is the rule by which a Buffer tells reordering from loss.
type Discipline uint8

// The disciplines. The default is Presto. For a sender that does not number its
// flowcells, Presto works as Sequence.
const (
	Presto   Discipline = iota // by flowcell: a gap within one is loss, a gap between two is held
	Sequence                   // by TCP sequence alone: every gap is held (DRB §5)
	Juggler                    // by TCP sequence; data in order waits, too, to be merged (EuroSys 2016)
	Off                        // deliver everything in order of arrival, only count
)

var disciplines = []string{"presto", "sequence", "juggler", "off"}

func (d Discipline) String() string { return disciplines[d] }

// ParseDiscipline is the inverse of String.
func ParseDiscipline(name string) (Discipline, error) {
	for i, n := range disciplines {
		if n == name {
			return Discipline(i), nil
		}
	}
	return 0, fmt.Errorf("resequencer: discipline %q is unknown; known: %s", name, strings.Join(disciplines, ", "))
}

// Defaults of Config.
const (
	DefaultHold    = 10 * time.Millisecond  // DRB §5
	DefaultMinHold = 100 * time.Microsecond // Juggler's ofo_timeout is 50 to 500 µs
	DefaultMerge   = 20 * time.Microsecond  // Juggler's inseq_timeout at 10 Gbit/s

	// While a flow waits for a hole, its sender can be ahead by no more than TCP's
	// window. The bound per flow allows for that.
	DefaultFlowPackets  = 8192
	DefaultFlowBytes    = 16 << 20
	DefaultPeerPackets  = 32768
	DefaultPeerBytes    = 32 << 20
	DefaultTotalPackets = 65536
	DefaultTotalBytes   = 64 << 20
	DefaultFlows        = 65536
)

// MaxHold is the longest Config.Hold. TCP gives up long before.
const MaxHold = time.Hour

// Config bounds how long packets are held and how many. Zero means the default of the
// same name. Above a bound packets are delivered early, never dropped.
type Config struct {
	Discipline Discipline

	// A packet waits for a hole twice as long as such holes took to be filled in its
	// flow, at least MinHold and at most Hold. A new flow begins with Hold. Hold is at
	// most MaxHold. If MinHold is above Hold, packets wait exactly Hold.
	MinHold, Hold time.Duration
	// Merge is how long Juggler keeps data that is in order, so that more can be merged
	// with it.
	Merge time.Duration

	FlowPackets, FlowBytes   int // most held for one flow
	PeerPackets, PeerBytes   int // most held for all flows from one address
	TotalPackets, TotalBytes int // most held in all

	// Flows is the most flows remembered, closed ones included: the Buffer must still
	// recognise their retransmissions.
	Flows int
	// Seed of the hash that finds flows. If it is secret, nobody else can choose
	// five-tuples that collide.
	Seed uint64
}

// Validate returns an error that names the first field that is out of range, and its
// range.
func (c Config) Validate() error {
	if int(c.Discipline) >= len(disciplines) {
		return fmt.Errorf("resequencer: Discipline is %d; want Presto, Sequence, Juggler or Off", c.Discipline)
	}
	for _, f := range []struct {
		name     string
		value    time.Duration
		standard time.Duration
	}{
		{"Hold", c.Hold, DefaultHold},
		{"MinHold", c.MinHold, DefaultMinHold},
		{"Merge", c.Merge, DefaultMerge},
	} {
		if f.value < 0 || f.value > MaxHold {
			return fmt.Errorf("resequencer: %s is %v; want more than 0 and at most %v, or 0 for %v", f.name, f.value, MaxHold, f.standard)
		}
	}
	for _, f := range []struct {
		name     string
		value    int
		standard int
	}{
		{"FlowPackets", c.FlowPackets, DefaultFlowPackets},
		{"FlowBytes", c.FlowBytes, DefaultFlowBytes},
		{"PeerPackets", c.PeerPackets, DefaultPeerPackets},
		{"PeerBytes", c.PeerBytes, DefaultPeerBytes},
		{"TotalPackets", c.TotalPackets, DefaultTotalPackets},
		{"TotalBytes", c.TotalBytes, DefaultTotalBytes},
		{"Flows", c.Flows, DefaultFlows},
	} {
		if f.value < 0 {
			return fmt.Errorf("resequencer: %s is %d; want more than 0, or 0 for %d", f.name, f.value, f.standard)
		}
	}
	return nil
}

func (c Config) withDefaults() Config {
	if int(c.Discipline) >= len(disciplines) {
		c.Discipline = Presto
	}
	c.Hold = min(orDefault(c.Hold, DefaultHold), MaxHold)
	c.MinHold = min(orDefault(c.MinHold, DefaultMinHold), c.Hold)
	c.Merge = min(orDefault(c.Merge, DefaultMerge), MaxHold)
	c.FlowPackets = orDefault(c.FlowPackets, DefaultFlowPackets)
	c.FlowBytes = orDefault(c.FlowBytes, DefaultFlowBytes)
	c.PeerPackets = orDefault(c.PeerPackets, DefaultPeerPackets)
	c.PeerBytes = orDefault(c.PeerBytes, DefaultPeerBytes)
	c.TotalPackets = orDefault(c.TotalPackets, DefaultTotalPackets)
	c.TotalBytes = orDefault(c.TotalBytes, DefaultTotalBytes)
	c.Flows = orDefault(c.Flows, DefaultFlows)
	return c
}

// orDefault takes a value that makes no sense for one not given, so that a
// Config that nobody validated cannot unbound the buffer.
func orDefault[T int | time.Duration](v, standard T) T {
	if v <= 0 {
		return standard
	}
	return v
}
