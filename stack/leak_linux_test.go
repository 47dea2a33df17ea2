package stack

import (
	"net/netip"
	"os"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"weft/link"
)

// inOwnNamespace gives the calling goroutine, for the rest of the test, a
// network namespace that ends with it.
func inOwnNamespace(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: opens interfaces in a network namespace")
	}
	if _, err := os.Stat("/dev/net/tun"); err != nil {
		t.Skip("no /dev/net/tun")
	}
	// Never unlocked: the thread ends with the goroutine.
	runtime.LockOSThread()
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		t.Skipf("a network namespace: %v", err)
	}
}

func TestHost_closeLeavesNoTUN(t *testing.T) {
	for _, c := range []struct {
		name    string
		offload bool
	}{{"plain", false}, {"offload", true}} {
		t.Run(c.name, func(t *testing.T) {
			inOwnNamespace(t)
			wantFlat(t, 50, func() {
				// Of that name it fails if the last one is still there.
				tun, err := link.OpenTUN(link.TUNConfig{
					Name: "weft0", Overhead: Overhead, Offload: c.offload, NoForwardCheck: true,
					Routes: []netip.Prefix{netip.PrefixFrom(addrA, 32)},
				})
				if err != nil {
					t.Fatal(err)
				}
				h := mustNew(t, Config{Address: addrA, Topology: fatTree, Device: tun, Simulation: Simulation{Seed: 1}})
				if _, err := h.Listen("tcp", h.Address().String()+":80"); err != nil {
					t.Fatal(err)
				}
				if err := h.Close(); err != nil {
					t.Fatal(err)
				}
			})
		})
	}
}
