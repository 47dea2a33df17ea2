package daemon

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"weft/flowcell"
	plane "weft/internal/dataplane"
	"weft/internal/event"
)

// payloadMax is the most TCP payload, in bytes, of the super-segments that this host's programs
// give to the TUN. 0 is as much as the kernel allows.
//
// Into a tunnel they go as trains of datagrams. The kernel's longest have a few datagrams more
// than a train can, and so cost two calls, which lead two trains through all of the network. The
// bound is the TUN's, though, and not only for programs: where the kernel forwards longer ones, as
// containers send, it would cut them into packets, which costs far more. So there is none there.
func (c *Config) payloadMax(p place) int {
	unit := c.policy().Unit
	if !c.tunnels() || p.forwards || unit.Kind == flowcell.UnitPacket {
		return unit.Bytes
	}
	train := plane.TrainPayload(p.mtu, c.overhead())
	if unit.Bytes > 0 {
		return min(unit.Bytes, train)
	}
	return train
}

// findAnyForwarding is findForwarding, and finds out whether the kernel forwards what comes by
// single devices, as systemd-networkd can have it do.
func (p *place) findAnyForwarding(devices string) error {
	err := p.findForwarding()
	if err != nil || p.forwards {
		return err
	}
	all, err := os.ReadDir(devices)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, d := range all {
		if d.Name() == "default" { // of devices that come
			continue
		}
		on, gone := os.ReadFile(filepath.Join(devices, d.Name(), "forwarding"))
		if gone == nil && strings.TrimSpace(string(on)) == "1" {
			p.forwards = true
		}
	}
	return err
}

// deviceSettings has a directory for each device of the calling thread's network namespace.
const deviceSettings = "/proc/sys/net/ipv4/conf"

// trainFitter is the part of a receiver that has a bound for super-segments.
type trainFitter interface {
	// fitTrains makes payload the bound, and reports whether it was another one before.
	fitTrains(payload int) (changed bool, err error)
}

// fitTrains changes the bound after somebody has had the kernel forward packets, as Docker does
// when it starts.
func (d *daemon) fitTrains() error {
	r, ok := d.receiver.(trainFitter)
	if !ok || !d.config.tunnels() {
		return nil
	}
	payload := d.config.payloadMax(d.place)
	changed, err := r.fitTrains(payload)
	if changed {
		d.log.Info(event.Configured, fmt.Sprintf("the kernel forwards packets: %t; its own TCP gives the tunnel at most %d bytes at once", d.place.forwards, payload))
	}
	return err
}

// fitTrains implements trainFitter.
func (r *hostReceiver) fitTrains(payload int) (changed bool, err error) {
	if payload == r.payload {
		return false, nil
	}
	if err := r.tun.SetPayloadMax(payload); err != nil {
		return false, err
	}
	r.payload = payload
	return true, nil
}
