package balance

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Kind is what a rule is called without its parameters. The numbers are those of the eBPF
// program.
type Kind uint32

// The kinds.
const (
	Routes     Kind = iota // the kernel's routes as they are
	ECMP                   // the kernel's routes, by the five-tuple
	RB                     // random
	RRB                    // round robin
	DRB                    // round robin for each pair of hosts
	LetFlow                // flowlets
	DRILL                  // least loaded
	TwoLevel               // the kernel's routes, up by the destination's host ID
	Classifier             // the same, and a flow classifier above it
	CONGA                  // at leaves: flowlets, by the least congestion that is reported
	Luopan                 // at leaves: flowcells, by sampled paths
)

var names = [...]string{"routes", "ecmp", "rb", "rrb", "drb", "letflow", "drill", "two-level", "classifier", "conga", "luopan"}

func (k Kind) String() string { return names[k] }

// Rule is a kind with its parameters.
type Rule struct {
	Kind    Kind
	Gap     time.Duration // LetFlow, CONGA: the pause that ends a flowlet
	Samples int           // DRILL's and Luopan's d
	Memory  int           // DRILL's m

	Interval time.Duration // Classifier: between rearrangements
	Moves    int           // Classifier: flows that move in one of them at most

	Tau      time.Duration // CONGA: how long an estimate of the load remembers; 0: by the slowest uplink's rate
	Expiry   time.Duration // Luopan: how long a sample is new; 0: a round trip
	Flowcell int           // Luopan: the bytes of IP packets that take one path
}

// Bounds and defaults of the parameters.
const (
	DefaultGap = 500 * time.Microsecond // as the hosts' letflow
	MinGap     = time.Microsecond
	MaxGap     = time.Minute

	DefaultSamples = 2 // DRILL(2, 1): DRILL §3.2.3
	DefaultMemory  = 1
	MaxSamples     = 4
	MaxMemory      = 2

	DefaultInterval = time.Second // thesis, caption of Fig. 3.11
	MinInterval     = 100 * time.Millisecond
	MaxInterval     = time.Minute
	DefaultMoves    = 3 // thesis Fig. 3.11
	MaxMoves        = 64
)

// Parse reads a rule: a kind's name and, behind a colon, parameters that differ from the
// defaults, as in letflow:gap=1ms or drill:d=2,m=1. "" is routes. An error says what is
// allowed.
func Parse(text string) (Rule, error) {
	name, parameters, given := strings.Cut(text, ":")
	if text == "" {
		name = names[Routes]
	}
	r := Rule{Kind: Kind(len(names))}
	for k, n := range names {
		if n == name {
			r.Kind = Kind(k)
		}
	}
	if int(r.Kind) == len(names) {
		return Rule{}, fmt.Errorf("no rule %q; choose one of %s", name, strings.Join(names[:], ", "))
	}
	switch r.Kind {
	case LetFlow:
		r.Gap = DefaultGap
	case DRILL:
		r.Samples, r.Memory = DefaultSamples, DefaultMemory
	case Classifier:
		r.Interval, r.Moves = DefaultInterval, DefaultMoves
	case CONGA, Luopan:
		r.setLeafDefaults()
	}
	if !given {
		return r, nil
	}
	for _, p := range strings.Split(parameters, ",") {
		if err := r.set(p); err != nil {
			return Rule{}, fmt.Errorf("rule %q: %w", text, err)
		}
	}
	return r, nil
}

// set sets a parameter of the form key=value.
func (r *Rule) set(parameter string) (err error) {
	key, value, _ := strings.Cut(parameter, "=")
	if done, err := r.setLeaf(key, value); done {
		return err
	}
	switch {
	case r.Kind == LetFlow && key == "gap":
		r.Gap, err = time.ParseDuration(value)
		if err != nil || r.Gap < MinGap || r.Gap > MaxGap {
			return fmt.Errorf("gap is %q, must be from %v to %v, such as gap=500us", value, MinGap, MaxGap)
		}
	case r.Kind == DRILL && key == "d":
		r.Samples, err = strconv.Atoi(value)
		if err != nil || r.Samples < 1 || r.Samples > MaxSamples {
			return fmt.Errorf("d is %q, must be from 1 to %d", value, MaxSamples)
		}
	case r.Kind == DRILL && key == "m":
		r.Memory, err = strconv.Atoi(value)
		if err != nil || r.Memory < 0 || r.Memory > MaxMemory {
			return fmt.Errorf("m is %q, must be from 0 to %d", value, MaxMemory)
		}
	case r.Kind == Classifier && key == "interval":
		r.Interval, err = time.ParseDuration(value)
		if err != nil || r.Interval < MinInterval || r.Interval > MaxInterval {
			return fmt.Errorf("interval is %q, must be from %v to %v, such as interval=1s", value, MinInterval, MaxInterval)
		}
	case r.Kind == Classifier && key == "moves":
		r.Moves, err = strconv.Atoi(value)
		if err != nil || r.Moves < 1 || r.Moves > MaxMoves {
			return fmt.Errorf("moves is %q, must be from 1 to %d", value, MaxMoves)
		}
	default:
		return fmt.Errorf("no parameter %q; letflow has gap, as in letflow:gap=500us, drill has d and m, as in drill:d=2,m=1, classifier has interval and moves, as in classifier:interval=1s,moves=3, conga gap and tau, luopan d, expiry and flowcell, the others have none", key)
	}
	return nil
}

// String is the rule as Parse reads it.
func (r Rule) String() string {
	switch r.Kind {
	case LetFlow:
		return fmt.Sprintf("%v:gap=%v", r.Kind, r.Gap)
	case DRILL:
		return fmt.Sprintf("%v:d=%d,m=%d", r.Kind, r.Samples, r.Memory)
	case Classifier:
		return fmt.Sprintf("%v:interval=%v,moves=%d", r.Kind, r.Interval, r.Moves)
	case CONGA, Luopan:
		return r.leafString()
	}
	return r.Kind.String()
}

// ByProgram reports whether an eBPF program decides. Otherwise the kernel's routes do alone.
func (r Rule) ByProgram() bool { return r.Kind >= RB && r.Kind <= DRILL || r.AtLeaf() }
