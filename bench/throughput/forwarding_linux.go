package throughput

import (
	"errors"
	"fmt"

	"weft/internal/kernel"
	"weft/topology"
)

// forwardNothing has both hosts forward no packets, as a host does that carries nothing for containers.
// The lab's hosts forward, since embedded stacks sit behind a TUN of theirs.
func forwardNothing(b *bench) (undo func() error, err error) {
	set := func(value string) error {
		var all []error
		for _, id := range []topology.NodeID{b.from, b.to} {
			err := b.lab.Do(id, func() error {
				_, _, err := kernel.SetSysctl(kernel.Sysctl{Key: "net.ipv4.ip_forward", Value: value})
				return err
			})
			if err != nil {
				all = append(all, fmt.Errorf("forwarding of %s: %w", b.topology.Node(id).Name, err))
			}
		}
		return errors.Join(all...)
	}
	undo = func() error { return set("1") }
	if err := set("0"); err != nil {
		return nil, errors.Join(err, undo())
	}
	return undo, nil
}
