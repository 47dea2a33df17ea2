package fabric

import (
	"fmt"
	"slices"

	"github.com/cilium/ebpf"
	"github.com/vishvananda/netlink"

	"weft/internal/kernel"
)

// Repair puts the meter back at ports that have lost it, and meters a port's new device as
// the former one. It returns a sentence for each thing it has mended. It leaves out ports
// without a device. It needs CAP_NET_ADMIN and must be called in the ports' network
// namespace.
func (m *Meter) Repair() (mended []string, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.handle == nil {
		return nil, errMeterClosed
	}
	all, err := kernel.Dumped(m.handle.LinkList)
	if err != nil {
		return nil, kernel.Explain(fmt.Errorf("meter: list the links: %w", err))
	}
	m.links = nil
	for i := range m.ports {
		p := &m.ports[i]
		at := slices.IndexFunc(all, func(l netlink.Link) bool { return l.Attrs().Name == p.name })
		if at < 0 {
			continue
		}
		if err := m.move(p, all[at].Attrs().Index); err != nil {
			return mended, fmt.Errorf("meter: port %s: %w", p.name, err)
		}
		m.links = append(m.links, all[at])
	}
	return m.attachAgain()
}

// RepairSettings is Repair at the devices that Repair has found. Call it often: the kernel
// does not tell when a program is removed, and looking is cheap.
func (m *Meter) RepairSettings() (mended []string, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.handle == nil {
		return nil, errMeterClosed
	}
	return m.attachAgain()
}

func (m *Meter) attachAgain() (mended []string, err error) {
	if mended, err = m.at.Repair(m.handle, m.links); err != nil {
		return mended, fmt.Errorf("meter: %w", err)
	}
	return mended, nil
}

// move has a port's state go by another interface index, emptied of what the former
// device has measured.
func (m *Meter) move(p *meteredPort, index int) error {
	if p.index == index {
		return nil
	}
	var s meterState
	if err := m.states.LookupWithFlags(uint32(p.index), &s, ebpf.LookupLock); err != nil {
		return err
	}
	s = s.configured()
	if err := m.states.Delete(uint32(p.index)); err != nil {
		return err
	}
	if err := m.states.Put(uint32(index), &s); err != nil {
		return err
	}
	p.index = index
	return nil
}
