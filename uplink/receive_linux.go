package uplink

import (
	"context"
	"errors"
	"net/netip"
	"time"

	"weft/internal/hostprog"
	"weft/internal/hostsetup"
	"weft/link"
)

// beatEvery is how often the programs are told that this process runs, and repaired.
const beatEvery = 50 * time.Millisecond

// receive takes what comes for the addresses from the kernel by a packet socket. own are the
// kernel's.
func (d *Device) receive(addresses []netip.Prefix, own map[netip.Addr]bool, o Options, up hostsetup.Uplink) error {
	config := hostprog.SteerConfig{Uplink: d.name}
	for _, a := range addresses {
		config.Rules = append(config.Rules, hostprog.SteerRule{Address: a.Addr(), What: hostprog.SteerEverything})
	}
	steer, err := hostprog.AttachSteer(config)
	if err != nil {
		return err
	}
	socket, err := link.OpenPacket(link.PacketConfig{Interface: d.name, Gateway: up.Gateway, MTU: o.MTU, Filter: steer.Filter(), BusyPoll: o.BusyPoll})
	if err != nil {
		return errors.Join(err, steer.Close())
	}
	if err := steer.Beat(); err != nil { // from here on the kernel gets none of it
		return errors.Join(err, steer.Close(), socket.Close())
	}
	d.steer, d.socket, d.carrier = steer, socket, &sender{Packet: socket, tun: d.tun, own: own}
	d.ended.Go(func() { d.leadRound(socket, own) })
	return nil
}

// attend ends with ctx. A process that is stopped or dead does not beat: the kernel then
// gets its packets, and packets leave plain. attend puts back programs that others have
// removed, or put theirs in front of.
func (d *Device) attend(ctx context.Context) {
	tick := time.NewTicker(beatEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			d.attendOnce()
		}
	}
}

func (d *Device) attendOnce() {
	for _, p := range d.programs() {
		_ = p.Beat() // fails only when closed
	}
	if !d.changing.TryLock() {
		return // another program is on its way, which may take longer than their patience
	}
	defer d.changing.Unlock()
	var wrong error
	for _, p := range d.programs() {
		did, err := p.Repair()
		d.repairs.Add(uint64(len(did)))
		for _, what := range did {
			d.log.Warn("repaired", "what", what)
		}
		wrong = errors.Join(wrong, err)
	}
	was := d.unmended.Load()
	if wrong == nil {
		d.unmended.Store(nil)
		if was != nil {
			d.log.Info("all is right again", "after", *was)
		}
		return
	}
	why := wrong.Error()
	d.unmended.Store(&why)
	if was == nil || *was != why {
		d.log.Error("trouble", "why", why)
	}
}

// programs lists those at the uplink.
func (d *Device) programs() (all []program) {
	if s := d.spray.Load(); s != nil {
		all = append(all, s)
	}
	if d.steer != nil {
		all = append(all, d.steer)
	}
	return all
}

// program is one at the uplink.
type program interface {
	Beat() error
	Repair() ([]string, error)
}
