package throughput

import (
	"context"
	"errors"

	"weft/internal/daemon"
	"weft/stack"
	"weft/uplink"
	"weft/uplink/kernelhost"
)

// kernelService is a Go service on the kernel's TCP, whose packets weft carries from within.
// The congestion control is chosen before a socket connects, as in the case kernel: one that
// has begun with bbr is paced for good, by a timer.
func kernelService(policyName string) way {
	return way{supports: needTUN, open: func(s site) (*host, error) {
		address := s.topology.Node(s.self).Addr
		h, err := kernelhost.New(stack.Config{Address: address, Topology: s.topology, Policy: policyName, Liveness: &stack.Liveness{}}, uplink.Options{})
		if err != nil {
			return nil, err
		}
		h.Control = setControl
		socket, err := daemon.StatusSocket()
		if err != nil {
			return nil, errors.Join(err, h.Close())
		}
		return &host{
			Endpoint:    h,
			address:     address,
			retransmits: kernelRetransmits,
			plain: func() (bool, uint64, error) {
				return askPlain(context.Background(), socket, s.topology.Node(s.peer).Addr)
			},
			close: h.Close,
		}, nil
	}}
}
