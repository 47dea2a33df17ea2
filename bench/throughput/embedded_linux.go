package throughput

import (
	"errors"
	"time"

	"weft/stack"
	"weft/uplink"
)

// skeleton is weft as it was at first: every packet is a system call.
func skeleton(policyName string) way {
	return way{supports: needTUN, open: func(s site) (*host, error) {
		device, err := openTUN(s, false)
		if err != nil {
			return nil, err
		}
		return newHost(s, stack.Config{Device: plain{device}, Policy: policyName}, device.Close)
	}}
}

// plain hides what a device can besides.
type plain struct{ stack.Device }

// busy is for how long the row of that name looks for packets before it sleeps.
const busy = 50 * time.Microsecond

// embedded is weft in the process of the program that uses it.
func embedded(policyName string, o uplink.Options) way {
	return way{supports: needTUN, open: func(s site) (*host, error) {
		c := stack.Config{Address: s.topology.EmbeddedAddr(s.self), Topology: s.topology, Policy: policyName}
		device, err := uplink.Open(c, o)
		if err != nil {
			return nil, err
		}
		if refused := device.Refused(); refused != "" {
			return nil, errors.Join(errors.New(refused), device.Close())
		}
		c.Device = device
		return newHost(s, c, device.Close)
	}}
}

// newHost runs a Host. It has what is below it from now on; free is for when it
// cannot be run.
func newHost(s site, c stack.Config, free func() error) (*host, error) {
	if c.Tunnel == nil {
		c.Address, c.Topology = s.topology.EmbeddedAddr(s.self), s.topology
	}
	h, err := stack.New(c)
	if err != nil {
		return nil, errors.Join(err, free())
	}
	return &host{
		Endpoint:    h,
		address:     h.Address(),
		retransmits: func() (uint64, error) { return h.Stats().TCP.Retransmits, nil },
		close:       h.Close,
	}, nil
}
