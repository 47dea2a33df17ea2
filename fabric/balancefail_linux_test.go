package fabric

import (
	"strings"
	"testing"

	"github.com/vishvananda/netlink"

	"weft/internal/kernel"
)

// A device that is gone does not keep the programs at the others, nor the setting.
func TestDetachBalance_gone(t *testing.T) {
	fourWays(t, func() error {
		b, err := AttachBalance(balanceOf("rb"))
		if err != nil {
			return err
		}
		first := b.links[0]
		if err := netlink.LinkDel(first); err != nil {
			return err
		}
		if err := b.Detach(); err != nil {
			t.Error(err)
		}
		mustPolicy(t, "2")
		if n, err := DetachBalance([]string{"p0", "p1", "p2", "p3", "p4"}); n != 0 || err != nil {
			t.Errorf("%d still had a program: %v", n, err)
		}
		return nil
	})
}

// A program that cannot be attached everywhere is attached nowhere, and the setting is what
// it was before the one that it was to replace.
func TestAttachBalance_fails(t *testing.T) {
	fourWays(t, func() error {
		old, err := AttachBalance(balanceOf("rb"))
		if err != nil {
			return err
		}
		old.Close()
		b := &Balance{queued: make(map[string]int)}
		defer b.Close()
		if err := b.open(balanceOf("drb")); err != nil {
			return err
		}
		// It is gone when the programs come to it.
		b.links = append(b.links, &netlink.Dummy{LinkAttrs: netlink.LinkAttrs{Name: "gone", Index: 1 << 20}})
		if err := b.begin(); err == nil {
			t.Error("a device that is gone has got a program")
		}
		mustPolicy(t, "2")
		if n, err := DetachBalance([]string{"p0", "p1", "p2", "p3", "p4"}); n != 0 || err != nil {
			t.Errorf("%d still had a program: %v", n, err)
		}
		return nil
	})
}

// A crash before the setting is written, or after it is restored, leaves what the next run
// needs to know.
func TestBalance_crashWindows(t *testing.T) {
	fourWays(t, func() error {
		set := func(value string) {
			if _, _, err := kernel.SetSysctl(kernel.Sysctl{Key: hashPolicy, Value: value}); err != nil {
				t.Fatal(err)
			}
		}
		b, err := AttachBalance(balanceOf("rb"))
		if err != nil {
			return err
		}
		b.Close()
		set("2") // as before setPolicy, and after restorePolicy
		if b, err = AttachBalance(balanceOf("rb")); err != nil {
			return err
		}
		defer b.Detach()
		set("0")
		at := b.in.Maps[formerMap]
		b.in.Maps[formerMap] = b.in.Maps[balanceMapSets] // which takes no such record
		if _, err := b.RepairSettings(); err == nil {
			t.Error("no record was written, and nobody says so")
		}
		b.in.Maps[formerMap] = at
		mustPolicy(t, "0") // not written before the record
		return nil
	})
}

// A port of which drill cannot know the rate keeps nobody from balancing, and is told of.
func TestBalance_unknownRate(t *testing.T) {
	fourWays(t, func() error {
		c := balanceOf("drill")
		p0, err := netlink.LinkByName("p0")
		if err != nil {
			return err
		}
		bucket := &netlink.Tbf{QdiscAttrs: netlink.QdiscAttrs{LinkIndex: p0.Attrs().Index, Handle: netlink.MakeHandle(1, 0), Parent: netlink.HANDLE_ROOT},
			Rate: 500, Limit: 5000, Buffer: netlink.Xmittime(500, 2000)} // too slow
		if err := netlink.QdiscAdd(bucket); err != nil {
			return err
		}
		c.Ports[0].RateBits = 0
		b, err := AttachBalance(c)
		if err != nil {
			return err
		}
		defer b.Detach()
		for range 2 {
			if _, err := b.Repair(); err == nil || !strings.Contains(err.Error(), "port p0: ") {
				t.Errorf("trouble %v", err)
			}
		}
		if len(b.queued) != 4 {
			t.Errorf("queues %v", b.queued)
		}
		// Queues of devices that are gone make room.
		p1, err := netlink.LinkByName("p1")
		if err != nil {
			return err
		}
		if err := netlink.LinkDel(p1); err != nil {
			return err
		}
		b.Repair()
		var q balanceQueue
		if err := b.in.Maps[balanceMapQueues].Lookup(uint32(p1.Attrs().Index), &q); err == nil || len(b.queued) != 3 {
			t.Errorf("queues %v, %v", b.queued, err)
		}
		return nil
	})
}
