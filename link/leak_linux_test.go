package link

import (
	"os"
	"runtime"
	"testing"
	"time"
)

// TestDevices_closeLeaksNothing opens and closes devices, also such as cannot be
// opened, and counts files and goroutines.
func TestDevices_closeLeaksNothing(t *testing.T) {
	c := newCable(t)
	round := func() {
		for _, offload := range []bool{true, false} {
			tun := openTUN(t, TUNConfig{Name: "weft0", Offload: offload, Queues: 3})
			if _, err := OpenTUN(TUNConfig{Name: "weft0", Offload: offload, Queues: 2}); err == nil {
				t.Error("an interface in use was opened")
			}
			NewDuplex(c.openNear(t, PacketConfig{Gateway: far4}), tun).Close()
		}
		if _, err := OpenPacket(PacketConfig{Interface: "lo"}); err == nil {
			t.Error("lo is not like Ethernet")
		}
	}
	round() // opens what the process keeps
	files, goroutines := openFiles(t), runtime.NumGoroutine()
	for range 20 {
		round()
	}
	if now := openFiles(t); now != files {
		t.Errorf("%d files are open, were %d", now, files)
	}
	// One that has done its work can still be about to end.
	for end := time.Now().Add(time.Minute); runtime.NumGoroutine() > goroutines; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d goroutines, were %d", runtime.NumGoroutine(), goroutines)
		}
	}
}

func openFiles(t *testing.T) int {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}
