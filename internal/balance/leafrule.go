package balance

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Bounds and defaults of the parameters of CONGA and Luopan.
const (
	DefaultLeafSamples = 2 // Luopan §4.3
	MaxLeafSamples     = 4
	MinTau             = time.Microsecond // as the hosts' conga
	MaxTau             = 10 * time.Second
	MinExpiry          = time.Microsecond // as the hosts' luopan
	MaxExpiry          = time.Hour
	MinFlowcell        = 1024 // as the hosts' flowcell_bytes
	MaxFlowcell        = 1 << 20
)

// AtLeaf reports whether leaf switches carry the rule out for their racks. Of other switches
// it means the kernel's routes.
func (r Rule) AtLeaf() bool { return r.Kind == CONGA || r.Kind == Luopan }

func (r *Rule) setLeafDefaults() {
	if r.Kind == CONGA {
		r.Gap = DefaultGap
	} else {
		r.Samples, r.Flowcell = DefaultLeafSamples, FlowcellBytes
	}
}

// setLeaf sets a parameter of CONGA or Luopan. done is false if it has none of that name.
func (r *Rule) setLeaf(key, value string) (done bool, err error) {
	set := func(d *time.Duration, least, most time.Duration) error {
		v, err := time.ParseDuration(value)
		if err != nil || v < least || v > most {
			return fmt.Errorf("%s is %q, must be from %v to %v, such as %s=500us", key, value, least, most, key)
		}
		*d = v
		return nil
	}
	switch {
	case r.Kind == CONGA && key == "gap":
		return true, set(&r.Gap, MinGap, MaxGap)
	case r.Kind == CONGA && key == "tau":
		return true, set(&r.Tau, MinTau, MaxTau)
	case r.Kind == Luopan && key == "expiry":
		return true, set(&r.Expiry, MinExpiry, MaxExpiry)
	case r.Kind == Luopan && key == "d":
		r.Samples, err = strconv.Atoi(value)
		if err != nil || r.Samples < 1 || r.Samples > MaxLeafSamples {
			return true, fmt.Errorf("d is %q, must be from 1 to %d", value, MaxLeafSamples)
		}
		return true, nil
	case r.Kind == Luopan && key == "flowcell":
		r.Flowcell, err = strconv.Atoi(value)
		if err != nil || r.Flowcell < MinFlowcell || r.Flowcell > MaxFlowcell {
			return true, fmt.Errorf("flowcell is %q, must be from %d to %d bytes", value, MinFlowcell, MaxFlowcell)
		}
		return true, nil
	}
	return false, nil
}

func (r Rule) leafString() string {
	parameters := []string{fmt.Sprintf("d=%d", r.Samples)}
	if r.Kind == CONGA {
		parameters[0] = fmt.Sprintf("gap=%v", r.Gap)
	}
	if r.Tau != 0 {
		parameters = append(parameters, fmt.Sprintf("tau=%v", r.Tau))
	}
	if r.Kind == Luopan && r.Flowcell != FlowcellBytes {
		parameters = append(parameters, fmt.Sprintf("flowcell=%d", r.Flowcell))
	}
	if r.Expiry != 0 {
		parameters = append(parameters, fmt.Sprintf("expiry=%v", r.Expiry))
	}
	return fmt.Sprintf("%v:%s", r.Kind, strings.Join(parameters, ","))
}
