package throughput

import (
	"context"
	"errors"
	"net"

	"weft/internal/daemon"
	"weft/stack"
	"weft/uplink"
	"weft/uplink/kernelhost"
)

// kernelService is a Go service on the kernel's TCP, whose packets weft carries from within.
func kernelService(policyName string) way {
	return way{supports: needTUN, open: func(s site) (*host, error) {
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
			Endpoint:    serviceSockets{h},
			address:     address,
			retransmits: kernelRetransmits,
			plain: func() (bool, uint64, error) {
				return askPlain(context.Background(), socket, s.topology.Node(s.peer).Addr)
			},
			close: h.Close,
		}, nil
	}}
}

// serviceSockets are a Host's, with the congestion control that is measured.
type serviceSockets struct{ *kernelhost.Host }

func (s serviceSockets) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := s.Host.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return c, closeAfter(c.Close, controlled(c))
}

func (s serviceSockets) Listen(network, address string) (net.Listener, error) {
	l, err := s.Host.Listen(network, address)
	if err != nil {
		return nil, err
	}
	return l, closeAfter(l.Close, controlled(l)) // those that it accepts have its own
}
