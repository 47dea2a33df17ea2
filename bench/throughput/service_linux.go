package throughput

import (
	"context"
	"errors"

	"weft/internal/daemon"
	"weft/internal/kernel"
	"weft/stack"
	"weft/uplink"
	"weft/uplink/kernelhost"
)

// kernelService is a Go service on the kernel's TCP, whose packets weft carries from within.
// Its sockets have the namespace's congestion control. It cannot be changed once a connection is
// open: a socket that began with bbr is paced for good, by a timer.
func kernelService(policyName string) way {
	return way{supports: needTUN, open: func(s site) (_ *host, err error) {
		was, _, err := kernel.SetSysctl(kernel.Sysctl{Key: controlKey, Value: congestionControl})
		if err != nil {
			return nil, err
		}
		undo := func() error {
			_, _, err := kernel.SetSysctl(kernel.Sysctl{Key: controlKey, Value: was})
			return err
		}
		defer func() {
			if err != nil {
				err = errors.Join(err, undo())
			}
		}()
		address := s.topology.Node(s.self).Addr
		h, err := kernelhost.New(stack.Config{Address: address, Topology: s.topology, Policy: policyName, Liveness: &stack.Liveness{}}, uplink.Options{})
		if err != nil {
			return nil, err
		}
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
			close: func() error { return errors.Join(h.Close(), undo()) },
		}, nil
	}}
}

// controlKey is a network namespace's congestion control.
const controlKey = "net.ipv4.tcp_congestion_control"
