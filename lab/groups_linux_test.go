package lab

import (
	"net"
	"net/netip"
	"testing"
	"time"

	"weft/internal/kernel/kerneltest"
)

// DRILL §3.4.3: with two leaves the paths H0 and H2 are symmetric, and H1 is not. Each flow
// goes by both of the first, or by H1 alone.
func TestBalance_drillKeepsFlowsInGroups(t *testing.T) {
	const flows, packets = 60, 30
	l := upLab(t, Config{Name: kerneltest.LabName("g"), Balance: "drill", Topology: kerneltest.Topology(t,
		"leaf-spine:leaves=2,spines=3,hosts=1,host-rate=100,fabric-rate=20,e0.0-a0.0=80,e0.0-a0.1=80,e0.1-a0.0=80")})
	hosts := kerneltest.Hosts(l.Config.Topology)
	leaf := l.Config.Topology.EdgeOf(hosts[0].ID)
	sent := func() (by [3]uint64) {
		ports, err := l.PortBytes(leaf)
		if err != nil {
			t.Fatal(err)
		}
		for i := range by {
			by[i] = ports[1+i].TxPackets
		}
		return by
	}
	dst := netip.AddrPortFrom(hosts[1].Addr, 9)
	alone, both, second := 0, 0, uint64(0)
	for range flows {
		before := sent()
		err := l.Do(hosts[0].ID, func() error {
			c, err := net.ListenUDP("udp4", net.UDPAddrFromAddrPort(netip.AddrPortFrom(hosts[0].Addr, 0)))
			if err != nil {
				return err
			}
			defer c.Close()
			for range packets {
				if _, err := c.WriteToUDPAddrPort(make([]byte, 200), dst); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		var by [3]uint64
		kerneltest.Within(t, kerneltest.Patience, "the flow has left", func() bool {
			sum := uint64(0)
			for i, n := range sent() {
				by[i] = n - before[i]
				sum += by[i]
			}
			if sum < packets {
				time.Sleep(time.Millisecond)
			}
			return sum >= packets
		})
		switch {
		case by[1] >= packets && by[0]+by[2] < 3: // the kernel's own may be among them
			alone++
		case by[1] < 3:
			both++
			second += by[2]
		default:
			t.Fatalf("a flow has %v packets by the three uplinks", by)
		}
	}
	// The groups weigh 5 and 1.
	t.Logf("%d flows by H1, %d by H0 and H2, with %d packets by H2", alone, both, second)
	if second < packets {
		t.Errorf("H2 has %d packets of %d flows, want a fifth", second, both)
	}
	if alone == 0 || alone > flows/2 {
		t.Errorf("%d of %d flows by H1, want about a sixth", alone, flows)
	}
}
