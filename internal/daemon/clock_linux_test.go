package daemon

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"weft/internal/hostsetup"
	"weft/internal/slowtest"
)

// A daemon is killed, and starts again after somebody has set the machine's clock back
// by an hour: its peer hears it at once. (The test has the first life begin an hour
// ahead.) Without its memory of the time it is refused.
func TestRun_tunnelAfterTheClockWasSetBack(t *testing.T) {
	slowtest.System(t)
	s := &soak{chaos: &chaos{network: newNetwork(t, "x")}}
	var file string
	s.do(soakTunnel[0], func() error {
		dir, err := hostsetup.MakeDir(-1, -1)
		file = filepath.Join(dir, hostsetup.ClockFile)
		return err
	})
	t.Cleanup(func() { os.RemoveAll(filepath.Dir(file)) })
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		t.Fatal(err)
	}
	var up unix.Timespec
	unix.ClockGettime(unix.CLOCK_BOOTTIME, &up)
	ahead := time.Now().Add(time.Hour).UnixNano() - up.Nano()
	if err := os.WriteFile(file, fmt.Appendf(nil, `{"boot":%q,"booted":%d}`, strings.TrimSpace(string(boot)), ahead), 0o600); err != nil {
		t.Fatal(err)
	}
	config := func(end int) string { return s.tunnelConfig(end, "      key: "+secret(1)+"\n") }
	for end, name := range soakTunnel {
		s.tunnel = append(s.tunnel, s.start(name, config(end)))
	}
	p := s.connectAddrs(soakTunnel[0], soakTunnel[1], "10.9.0.2")
	p.exchange(100_000)
	again := func() {
		s.tunnel[0].end(syscall.SIGKILL)
		s.tunnel[0] = s.start(soakTunnel[0], config(0))
	}
	replayed := func() int {
		n, err := strconv.Atoi(s.tunnel[1].status()["dataplane.tunnel.replayed"])
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	again()
	p.exchange(100_000)
	if n := replayed(); n > 0 {
		t.Errorf("%d datagrams of the second life were refused", n)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	again()
	s.do(soakTunnel[0], func() error {
		c, err := net.DialTimeout("udp", "10.9.0.2:9", time.Second)
		if err == nil {
			_, err = c.Write([]byte("anything"))
			c.Close()
		}
		return err
	})
	for end := time.Now().Add(time.Minute); replayed() == 0; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("without its memory it was not refused: this test tests nothing")
		}
	}
}
