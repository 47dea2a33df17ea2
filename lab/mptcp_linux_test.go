package lab

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"
	"time"

	"weft/internal/kernel/kerneltest"
	"weft/internal/slowtest"
	"weft/topology"
)

// One MPTCP connection between two hosts must get its 7 further subflows. Both
// ends announce addresses, and so either may have opened a subflow. It sends
// little, so that no announcement is lost to a full queue.
func TestLab_mptcpSubflows(t *testing.T) {
	slowtest.System(t)
	kerneltest.NeedRoot(t)
	if _, err := os.Stat("/proc/sys/net/mptcp"); errors.Is(err, os.ErrNotExist) {
		t.Skip("this kernel has no MPTCP")
	}
	l := upLab(t, Config{Topology: kerneltest.Topology(t, "fat-tree:k=4")})
	if err := l.EnableMPTCP(MPTCPSubflows); err != nil {
		t.Fatal(err)
	}
	hosts := kerneltest.Hosts(l.Config.Topology)
	from, to := hosts[0], hosts[len(hosts)-1]
	stop := transfer(t, l, from, to, tcp{multipath: true, pause: 5 * time.Millisecond})
	defer stop()
	kerneltest.Within(t, kerneltest.Patience, "7 subflows joined", func() bool {
		joins := 0
		for _, h := range []topology.Node{from, to} {
			err := l.Do(h.ID, func() error {
				n, err := netstat("MPTcpExt:", "MPJoinAckRx")
				joins += n
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		return joins >= MPTCPSubflows-1
	})
	// The announced ports are in use, and another number is for new connections.
	if err := l.EnableMPTCP(2); err != nil {
		t.Error(err)
	}
	// More than the kernel's path manager opens are opened by weft's, and then by the kernel's again.
	joined := func(h topology.Node) (n int) {
		err := l.Do(h.ID, func() (err error) { n, err = netstat("MPTcpExt:", "MPJoinAckRx"); return err })
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	managers := func() (all string) {
		for _, h := range hosts {
			err := l.Do(h.ID, func() error {
				b, err := os.ReadFile(mptcpManager)
				all += strings.TrimSpace(string(b))
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		return all
	}
	for _, n := range []int{2 * MPTCPSubflows, MPTCPSubflows} {
		if err := l.EnableMPTCP(n); err != nil {
			t.Fatal(err)
		}
		who := "0"
		if n > MaxMPTCPSubflows {
			who = "1"
		}
		if got := managers(); got != strings.Repeat(who, len(hosts)) {
			t.Errorf("with %d subflows hosts' managers are %s", n, got)
		}
		a, b := hosts[1], hosts[len(hosts)-2]
		before := joined(a) + joined(b)
		defer transfer(t, l, a, b, tcp{multipath: true, pause: 5 * time.Millisecond})()
		kerneltest.Within(t, kerneltest.Patience, "further subflows", func() bool { return joined(a)+joined(b)-before >= n-1 })
		want := SubflowCounts{}
		if n > MaxMPTCPSubflows {
			want = SubflowCounts{Connections: 1, Opened: int64(n - 1)}
			kerneltest.Within(t, kerneltest.Patience, "weft's counts", func() bool { return l.Subflows().Opened == want.Opened })
		}
		if c := l.Subflows(); c != want {
			t.Errorf("with %d subflows weft counts %+v, want %+v", n, c, want)
		}
	}
	// A lab that stays up has the kernel's manager again, after a program that was killed, too.
	if err := l.EnableMPTCP(2 * MPTCPSubflows); err != nil {
		t.Fatal(err)
	}
	other := newLab(l.Config, &labState{})
	other.announced = true // the ports are in use
	if err := other.EnableMPTCP(MPTCPSubflows); err != nil {
		t.Fatal(err)
	}
	if got := managers(); strings.Contains(got, "1") {
		t.Errorf("another program leaves managers %s", got)
	}
	for _, h := range hosts {
		if err := l.Do(h.ID, func() error { return setMPTCPManager(true) }); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.closeSubflowers(); err != nil {
		t.Error(err)
	}
	if got := managers(); strings.Contains(got, "1") {
		t.Errorf("after the last manager there are %s", got)
	}
	for _, n := range []int{0, MaxManagedSubflows + 1} {
		if l.EnableMPTCP(n) == nil {
			t.Errorf("%d subflows are no error", n)
		}
	}
}

// A namespace is gone when a device in it is, of which the test holds the other end.
func TestDown_freesNamespacesWithMPTCP(t *testing.T) {
	slowtest.System(t)
	kerneltest.NeedRoot(t)
	l := upLab(t, Config{Topology: kerneltest.Topology(t, "fat-tree:k=2")})
	if err := l.EnableMPTCP(MPTCPSubflows); errors.Is(err, fs.ErrNotExist) {
		t.Skip("this kernel has no MPTCP")
	} else if err != nil {
		t.Fatal(err)
	}
	outside := kerneltest.Namespace(t, "out")
	kerneltest.EthernetPair(t, outside, "out", "in")
	kerneltest.Shell(t, outside, "ip link set in netns "+l.Namespace(kerneltest.Hosts(l.Config.Topology)[0].ID))
	if _, err := Down(l.Config.Name); err != nil {
		t.Fatal(err)
	}
	kerneltest.Within(t, kerneltest.Patience, "the namespace to go", func() bool {
		return !strings.Contains(kerneltest.Shell(t, outside, "ip -o link"), "out@")
	})
}

// netstat reads a counter of the current network namespace.
func netstat(group, name string) (int, error) {
	b, err := os.ReadFile("/proc/thread-self/net/netstat")
	if err != nil {
		return 0, err
	}
	var names []string
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		if f[0] != group {
			continue
		}
		if names == nil {
			names = f
			continue
		}
		for i := range f {
			if names[i] == name {
				var n int
				_, err := fmt.Sscan(f[i], &n)
				return n, err
			}
		}
	}
	return 0, fmt.Errorf("no counter %s %s", group, name)
}
