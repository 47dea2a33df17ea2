package hostprog

import (
	"encoding/binary"
	"fmt"

	"github.com/cilium/ebpf"
)

// set prepares a program for the lists.
func (d Datagrams) set(spec *ebpf.CollectionSpec) error {
	return spec.Variables["listing"].Set(!d.none())
}

// put writes the lists.
func (d Datagrams) put(ports, hosts *ebpf.Map) error {
	for _, p := range d.Ports {
		if err := ports.Put(binary.BigEndian.AppendUint16(nil, p), uint8(1)); err != nil {
			return fmt.Errorf("datagrams of port %d: %w", p, err)
		}
	}
	for _, p := range d.Hosts {
		if err := hosts.Put(lpmOf(p.Masked()), uint8(1)); err != nil {
			return fmt.Errorf("datagrams of %v: %w", p, err)
		}
	}
	return nil
}
