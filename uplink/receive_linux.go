package uplink

import (
	"context"
	"errors"
	"time"

	"golang.org/x/net/bpf"

	"weft/fabric"
	"weft/link"
)

// beatEvery is how often the steering program is told that this process runs.
const beatEvery = fabric.SteerPatience / 10

// receive takes what comes for the address from the kernel by a packet socket.
func (d *Device) receive(ctx context.Context, c Config, up fabric.Uplink) error {
	own, err := ownAddresses()
	if err != nil {
		return err
	}
	steer, err := fabric.AttachSteer(fabric.SteerConfig{
		Uplink: d.name, Rules: []fabric.SteerRule{{Address: c.Address, What: fabric.SteerEverything}},
	})
	if err != nil {
		return err
	}
	var filter []bpf.RawInstruction
	for _, i := range steer.Filter() {
		filter = append(filter, bpf.RawInstruction{Op: i.Code, Jt: i.Jt, Jf: i.Jf, K: i.K})
	}
	socket, err := link.OpenPacket(link.PacketConfig{Interface: d.name, Gateway: up.Gateway, MTU: c.MTU, Filter: filter})
	if err != nil {
		return errors.Join(err, steer.Close())
	}
	if err := steer.Beat(); err != nil { // from here on the kernel gets none of it
		return errors.Join(err, steer.Close(), socket.Close())
	}
	d.steer, d.carrier = steer, link.NewDuplex(socket, d.tun)
	d.ended.Go(func() { beat(ctx, steer) })
	d.ended.Go(func() { d.leadRound(socket, own) })
	return nil
}

// beat ends with ctx. A process that is stopped or dead does not beat, and the
// kernel gets its packets.
func beat(ctx context.Context, steer *fabric.Steer) {
	tick := time.NewTicker(beatEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			// Fails only when closed, and then ctx is done.
			_ = steer.Beat()
		}
	}
}
