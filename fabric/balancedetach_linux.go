package fabric

import (
	"errors"
	"fmt"
	"slices"

	"github.com/vishvananda/netlink"

	"weft/internal/kernel"
)

// Close lets go of the programs, which stay attached.
func (b *Balance) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.close()
}

func (b *Balance) close() error {
	if b.handle == nil {
		return nil
	}
	b.handle.Close()
	b.handle = nil
	return errors.Join(b.in.Close(), b.out.Close())
}

// Detach is DetachBalance for all ports, and Close.
func (b *Balance) Detach() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.handle == nil {
		return nil
	}
	former, err := readFormer(b.in.Maps[formerMap])
	_, err2 := detachBalance(b.handle, b.links, former)
	return errors.Join(err, err2, b.close())
}

// DetachBalance removes the programs from ports of the network namespace of the calling
// thread, whoever attached them, and restores the kernel's setting. It returns how many
// ports had one. It goes on after an error, as far as it can.
func DetachBalance(ports []string) (removed int, err error) {
	h, err := netlink.NewHandle(kernel.Families...)
	if err != nil {
		return 0, kernel.Explain(err)
	}
	defer h.Close()
	links, err := kernel.Dumped(h.LinkList)
	if err != nil {
		return 0, kernel.Explain(fmt.Errorf("balance: list the links: %w", err))
	}
	links = deleted(links, func(l netlink.Link) bool { return !slices.Contains(ports, l.Attrs().Name) })
	former, err := formerPolicy(h, links)
	removed, err2 := detachBalance(h, links, former)
	if err = errors.Join(err, err2); err != nil {
		return removed, fmt.Errorf("balance: %w", err)
	}
	return removed, nil
}

// detachBalance restores the settings before it removes the programs, which know the former
// ones, so that a crash in between loses nothing. It needs no privilege but CAP_NET_ADMIN if
// the programs are this process's.
func detachBalance(h *netlink.Handle, links []netlink.Link, former policies) (removed int, err error) {
	err = restorePolicy(former)
	removed, err2 := kernel.BalanceFilter.DetachAll(h, links)
	n, err3 := kernel.QueueFilter.DetachAll(h, links)
	return max(removed, n), errors.Join(err, err2, err3)
}
