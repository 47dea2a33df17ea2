package fabric

import (
	"errors"
	"fmt"
	"slices"

	"github.com/vishvananda/netlink"

	"weft/internal/balance"
	"weft/internal/kernel"
)

// Repair brings the programs' tables in step with the kernel's routes. It puts the programs
// back at ports that have lost them, or have a new device, and the kernel's setting. It
// returns a sentence for each thing it has mended. It leaves out ports without a device.
// It needs CAP_NET_ADMIN and must be called in the ports' network namespace.
func (b *Balance) Repair() (mended []string, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.handle == nil {
		return nil, errBalanceClosed
	}
	if err := b.find(); err != nil {
		return nil, fmt.Errorf("balance: %w", err)
	}
	if err = errors.Join(b.fillQueues(), b.refresh()); err != nil {
		err = fmt.Errorf("balance: %w", err)
	}
	mended, err2 := b.repairSettings()
	return mended, errors.Join(err, err2)
}

// find finds the ports' devices.
func (b *Balance) find() error {
	all, err := kernel.Dumped(b.handle.LinkList)
	if err != nil {
		return kernel.Explain(fmt.Errorf("list the links: %w", err))
	}
	b.links = slices.DeleteFunc(all, func(l netlink.Link) bool {
		return !slices.ContainsFunc(b.ports, func(p MeterPort) bool { return p.Name == l.Attrs().Name })
	})
	for _, link := range b.links {
		if kind := link.Attrs().EncapType; kind != "ether" {
			return fmt.Errorf("port %s: frames are of type %s; an Ethernet device is needed", link.Attrs().Name, kind)
		}
	}
	return nil
}

// RepairSettings is Repair for programs and setting at the devices that Repair has found.
// Call it often: the kernel does not tell when these change, and looking is cheap. Both renew
// the lease of a leaf's paths.
func (b *Balance) RepairSettings() (mended []string, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.handle == nil {
		return nil, errBalanceClosed
	}
	return b.repairSettings()
}

func (b *Balance) repairSettings() (mended []string, err error) {
	mended, err = b.repairPrograms()
	did, err2 := b.repairPolicy()
	if err = errors.Join(err, err2, b.renew()); err != nil {
		err = fmt.Errorf("balance: %w", err)
	}
	return append(mended, did...), err
}

// repairPrograms has both programs at all ports.
func (b *Balance) repairPrograms() (mended []string, err error) {
	for _, p := range []*kernel.PortProgram{b.out, b.in} {
		did, e := p.Repair(b.handle, b.links)
		mended, err = append(mended, did...), errors.Join(err, e)
	}
	return mended, err
}

// fillQueues gives the ports their virtual queues, by which drill decides. A new device
// begins with an empty one. A port without a queue counts as empty.
func (b *Balance) fillQueues() (err error) {
	if b.rule.Kind != balance.DRILL {
		return nil
	}
	for name, index := range b.queued { // first, to make room
		if !slices.ContainsFunc(b.links, func(l netlink.Link) bool { return l.Attrs().Index == index }) {
			b.in.Maps[balanceMapQueues].Delete(uint32(index)) // it fails if there is none
			delete(b.queued, name)
		}
	}
	for _, link := range b.links {
		if a := link.Attrs(); b.queued[a.Name] != a.Index {
			err = errors.Join(err, b.fillQueue(link))
		}
	}
	return err
}

func (b *Balance) fillQueue(link netlink.Link) error {
	a := link.Attrs()
	i := slices.IndexFunc(b.ports, func(p MeterPort) bool { return p.Name == a.Name })
	port, err := asTheyAre(b.handle, []netlink.Link{link}, b.ports[i:i+1])
	if err != nil {
		return err
	}
	q, err := port[0].queue()
	if err == nil {
		err = b.in.Maps[balanceMapQueues].Put(uint32(a.Index), &q)
	}
	if err != nil {
		return fmt.Errorf("port %s: %w", a.Name, err)
	}
	b.queued[a.Name] = a.Index
	return nil
}
