package examples

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"weft/fabric"
	"weft/internal/kernel"
	"weft/internal/kernel/kerneltest"
)

// compiled is an extension's object, by the command of the example's guide.
func compiled(t *testing.T, source string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), strings.TrimSuffix(filepath.Base(source), ".c")+".o")
	guide, err := os.ReadFile("extension/README.md")
	if err != nil {
		t.Fatal(err)
	}
	command := regexp.MustCompile(`(?m)^clang (.*\\\n)*.*`).FindString(string(guide))
	for _, r := range [][2]string{{"clang ", "umask 022; clang -Wall -Werror "}, {"examples/extension/scavenger.c", source}, {"-o scavenger.o", "-o " + out}} {
		if !strings.Contains(command, r[0]) {
			t.Fatalf("the guide's command %q has no %q", command, r[0])
		}
		command = strings.Replace(command, r[0], r[1], 1)
	}
	cmd := exec.Command("sh", "-c", command)
	cmd.Dir = ".."
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", cmd, err, text)
	}
	return out
}

// broken reads a packet that may be shorter.
const broken = `#include "weft_extension.h"
SEC("tc") int broken(struct __sk_buff *skb)
{
	return *((__u8 *)(long)skb->data + 14) == 0x45 ? TC_ACT_SHOT : weft_next(skb);
}
char _license[] SEC("license") = "GPL";
`

// around run before and behind the example. The last drops DSCP 8, which shows that it runs.
const around = `#include "weft_extension.h"
SEC("tc") int first(struct __sk_buff *skb)
{
	return skb->cb[WEFT_NUMBER] == 0 && skb->cb[WEFT_RATE] == 80 ? weft_next(skb) : TC_ACT_SHOT;
}
SEC("tc") int last(struct __sk_buff *skb)
{
	__u8 tos = 0;

	bpf_skb_load_bytes(skb, 15, &tos, 1);
	return skb->cb[WEFT_NUMBER] == 2 && tos != 8 << 2 ? weft_next(skb) : TC_ACT_SHOT;
}
char _license[] SEC("license") = "GPL";
`

// The example loads, drops packets of lower effort where there is a queue, and no others. A
// program that does not verify before it is left out, with the reason; those before and
// behind it run in their order.
func TestExtension_scavenger(t *testing.T) {
	if _, err := exec.LookPath("clang"); err != nil {
		t.Skip("needs clang, to compile the example")
	}
	namespace := kerneltest.Namespace(t, "extension")
	source := func(name, text string) string {
		file := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return compiled(t, file)
	}
	more := source("more.c", around)
	list := []fabric.Extension{
		{Object: source("broken.c", broken), Program: "broken"},
		{Object: more, Program: "first"},
		{Object: compiled(t, "examples/extension/scavenger.c"), Program: "scavenger"},
		{Object: more, Program: "last"},
	}
	err := kernel.InNamespace(namespace, func() error {
		near, far, err := wire()
		if err != nil {
			return err
		}
		m, err := fabric.AttachMeter(fabric.MeterConfig{Ports: []fabric.MeterPort{{Name: near.Attrs().Name, RateBits: 80_000, QueueBytes: 1 << 30}}, Extensions: list})
		if err != nil {
			return err
		}
		defer m.Close()
		for i, s := range m.Extensions() {
			if i == 0 && !strings.Contains(s.Error, "without a check that the packet reaches so far") || i > 0 && s.Error != "" {
				t.Errorf("extension %d: %+v", i, s)
			}
		}
		const packets, others = 300, 50 // what the kernel itself may send meanwhile
		for _, c := range []struct {
			dscp     int
			passes   bool
			whatever string
		}{{0, true, "best effort"}, {1, false, "lower effort"}, {8, false, "what the last extension drops"}, {2, true, "another class"}} {
			before, err := received(far)
			if err != nil {
				return err
			}
			if err := send(c.dscp<<2, packets); err != nil {
				return err
			}
			after, err := received(far)
			if err != nil {
				return err
			}
			if n := after - before; c.passes && n < packets || !c.passes && n > others {
				t.Errorf("%s behind a queue: %d of %d packets arrived", c.whatever, n, packets)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// wire makes a link in the namespace, whose far end 10.9.0.2 is.
func wire() (near, far netlink.Link, err error) {
	veth := netlink.NewVeth(netlink.NewLinkAttrs())
	veth.Name, veth.PeerName = "p0", "p1"
	if err = netlink.LinkAdd(veth); err != nil {
		return nil, nil, err
	}
	links, err := netlink.LinkList()
	if err != nil {
		return nil, nil, err
	}
	for _, l := range links {
		switch l.Attrs().Name {
		case "p0":
			near = l
		case "p1":
			far = l
		}
		if err = netlink.LinkSetUp(l); err != nil {
			return nil, nil, err
		}
	}
	addr, err := netlink.ParseAddr("10.9.0.1/24")
	if err == nil {
		err = netlink.AddrAdd(near, addr)
	}
	if err == nil {
		err = netlink.NeighAdd(&netlink.Neigh{LinkIndex: near.Attrs().Index, State: netlink.NUD_PERMANENT,
			IP: net.IPv4(10, 9, 0, 2), HardwareAddr: far.Attrs().HardwareAddr})
	}
	return near, far, err
}

// received is how many packets have arrived at a device.
func received(l netlink.Link) (uint64, error) {
	l, err := netlink.LinkByIndex(l.Attrs().Index)
	if err != nil {
		return 0, err
	}
	return l.Attrs().Statistics.RxPackets, nil
}

// send sends datagrams to the far end.
func send(tos, packets int) error {
	c, err := net.Dial("udp4", "10.9.0.2:9")
	if err != nil {
		return err
	}
	defer c.Close()
	raw, err := c.(*net.UDPConn).SyscallConn()
	if err != nil {
		return err
	}
	raw.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_TOS, tos) })
	for range packets {
		c.Write(make([]byte, 1000)) // what the extension drops may be an error
	}
	return err
}
