package daemon

import (
	"encoding/base64"
	"fmt"
	"io"
	"net/netip"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"weft/hedera/wire"
	"weft/internal/kernel/kerneltest"
	"weft/internal/scheduling/schedulingtest"
	"weft/internal/slowtest"
	"weft/topoupdate"
)

// A host, which has given its privileges away, reports an elephant and sends it by the path that
// a scheduler places it on, until the placement has expired: then by its policy again. What is placed by
// a path that is not the flow's is refused.
func TestRun_schedulesAFlow(t *testing.T) {
	slowtest.System(t)
	n := sharedNetwork(t)
	top := n.lab.Config.Topology
	secret := []byte(strings.Repeat("k", 32))
	own := n.node("h0.0.2").Addr
	var fake *schedulingtest.Fake
	n.do("h0.0.2", func() error {
		fake = schedulingtest.Start(t, netip.MustParseAddrPort("127.0.0.1:0"), top, topoupdate.Keys{List: []topoupdate.Key{{ID: 3, Secret: secret}}})
		return nil
	})
	host := n.start("h0.0.2", fmt.Sprintf("topology: fat-tree:k=4\nmode: offload\npolicy: drb\nfailures: {updates: false, keys: [{id: 3, key: %q}]}\nscheduler: {servers: [%q], every: 100ms, share: 0.0001, link_mbit: 1000}\n",
		base64.StdEncoding.EncodeToString(secret), fake.Addr))
	p := n.connect("h0.0.2", "h3.1.3")
	go io.Copy(io.Discard, p.b)
	go func() {
		for b := make([]byte, 1<<14); ; time.Sleep(time.Millisecond) {
			if _, err := p.a.Write(b); err != nil {
				return
			}
		}
	}()
	var flow wire.Flow
	port := int(netip.MustParseAddrPort(p.a.LocalAddr().String()).Port())
	kerneltest.Within(t, kerneltest.Patience, "the flow is reported", func() bool {
		for _, flow = range fake.Reported(own) {
			if int(flow.Tuple.SrcPort) == port {
				return true
			}
		}
		return false
	})
	paths := top.Paths(n.node("h0.0.2").ID, n.node("h3.1.3").ID)
	place := func(path int, valid time.Duration) wire.Placement {
		return wire.Placement{Tuple: flow.Tuple, Path: path, Via: paths.Addr(path), For: valid}
	}
	wrong := place(1, time.Minute)
	wrong.Path = 2
	fake.Place(own, wrong)
	kerneltest.Within(t, kerneltest.Patience, "a path by another switch is refused", func() bool { return number(host.status(), "scheduler.unknown") == 1 })
	// bounces returns what goes by each path while the uplink sends some packets.
	bounces := func() (by [4]int) {
		now := func() (all [4]int) {
			s := host.status()
			for i := range 16 {
				for k := range all {
					if s[fmt.Sprintf("offload.bounces.%d.address", i)] == paths.Addr(k).String() {
						all[k] = number(s, fmt.Sprintf("offload.bounces.%d.packets", i))
					}
				}
			}
			return all
		}
		before := now()
		kerneltest.Within(t, kerneltest.Patience, "packets leave", func() bool {
			by = now()
			total := 0
			for k := range by {
				by[k] -= before[k]
				total += by[k]
			}
			return total > 400
		})
		return by
	}
	for _, path := range []int{1, 3} {
		fake.Place(own, place(path, time.Minute))
		kerneltest.Within(t, kerneltest.Patience, "all but a few packets go by the pin", func() bool {
			by := bounces()
			return number(host.status(), "scheduler.pins") == 1 && 10*by[path] > 9*(by[0]+by[1]+by[2]+by[3])
		})
	}
	fake.Place(own, place(3, time.Millisecond))
	kerneltest.Within(t, kerneltest.Patience, "the policy has the packets again", func() bool {
		by := bounces()
		return number(host.status(), "scheduler.expired") == 1 && 10*min(by[0], by[1], by[2], by[3]) > by[0]+by[1]+by[2]+by[3]
	})
	if s := host.status(); number(s, "scheduler.program.pinned") == 0 || s["scheduler.error"] != "" {
		t.Errorf("status %v", s)
	}
	host.end(unix.SIGTERM)
}
