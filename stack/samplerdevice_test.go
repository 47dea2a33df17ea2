package stack

import (
	"errors"
	"net/netip"
	"testing"
	"time"

	"weft/encap"
)

// decider is a device that encapsulates, and is told the choices.
type decider struct {
	tape
	encapsulator
	fails   bool
	choices []choice
}

type choice struct {
	rack  netip.Prefix
	path  int
	valid time.Duration
}

func (d *decider) Choose(rack netip.Prefix, path int, valid time.Duration) error {
	if d.fails {
		return errors.New("not live")
	}
	d.choices = append(d.choices, choice{rack, path, valid})
	return nil
}

// A device that chooses is told before it sees the flowcell, whether a sample decides
// or not.
func TestSampler_tellsTheDevice(t *testing.T) {
	device := &decider{}
	h, _, clock := samplingHost(t, func(c *Config) {
		c.Device, c.PolicyOptions.Expiry = device, time.Millisecond
	})
	h.sendCell(t, 1)
	if len(device.choices) > 0 {
		t.Fatalf("told without knowing: %v", device.choices)
	}
	probes := device.samples(t)
	h.Receive(reply(t, probes[0], func(s *encap.Sample) { s.Queue, s.Meters = 90, 3 }))
	h.Receive(reply(t, probes[1], func(s *encap.Sample) { s.Queue, s.Meters = 3, 3 }))
	for port := range uint16(10) {
		h.sendCell(t, 2+port)
	}
	// Its flowcells fill all four paths, the better sample first.
	told := make(map[int]int)
	for _, c := range device.choices {
		if told[c.path]++; c.rack.String() != "10.3.1.0/24" || c.valid <= 0 || c.valid > 10*time.Millisecond {
			t.Fatalf("told is %v", device.choices)
		}
	}
	if len(device.choices) != 10 || device.choices[0].path != int(probes[1].Path) || len(told) != 4 || told[0] < 2 || told[1] < 2 || told[2] < 2 || told[3] < 2 {
		t.Fatalf("told is %v", device.choices)
	}
	device.choices = nil
	clock.Run(1100 * time.Microsecond)
	for _, p := range device.samples(t) {
		h.Receive(reply(t, p, func(s *encap.Sample) { s.Queue, s.Meters = 50, 3 }))
	}
	device.fails = true
	h.sendCell(t, 50)
	device.fails = false
	h.sendCell(t, 51)
	if s := h.Stats().Samples; len(device.choices) != 1 || s.Told != 11 || s.Untold != 1 {
		t.Errorf("told is %v; %+v", device.choices, s)
	}
}
