package gather

import (
	"net/netip"
	"testing"

	"weft/internal/doctor"
	"weft/internal/kernel"
	"weft/internal/kernel/kerneltest"
	"weft/internal/overview"
)

func TestMain(m *testing.M) { kerneltest.Main(m, nil) }

// A host's own second device in the same Ethernet answers for the host's address, and is no other
// machine; another machine is.
func TestProbeARP(t *testing.T) {
	self, other := kerneltest.Namespace(t, "self"), kerneltest.Namespace(t, "other")
	kerneltest.Shell(t, other, `ip link add dev lan type bridge && ip link set lan up`)
	for _, n := range []string{"0", "1"} {
		kerneltest.Shell(t, self, "ip link add p"+n+" type veth peer name q"+n+" netns "+other+" && ip link set p"+n+" up")
		kerneltest.Shell(t, other, "ip link set q"+n+" master lan up")
	}
	kerneltest.Shell(t, self, "ip addr add 10.9.0.2/24 dev p0")
	probe := func() (twin string) {
		if err := kernel.InNamespace(self, func() (err error) { twin, err = probeARP("p0", netip.MustParseAddr("10.9.0.2")); return err }); err != nil {
			t.Fatal(err)
		}
		return twin
	}
	if twin := probe(); twin != "" {
		t.Errorf("%s is taken for another machine", twin)
	}
	kerneltest.Shell(t, other, "ip link set lan address 02:00:00:00:09:09 && ip addr add 10.9.0.2/32 dev lan")
	kerneltest.Within(t, kerneltest.Patience, "the other machine answers", func() bool { return probe() == "02:00:00:00:09:09" })
}

// Where nobody was asked, it is not said that nobody has the address.
func TestFindTwin_notAsked(t *testing.T) {
	for _, c := range []struct {
		host overview.Host
		root bool
	}{{overview.Host{Address: "10.0.0.2", Uplink: "p0"}, false}, {overview.Host{}, true}, {overview.Host{Address: "10.0.0.2", Uplink: "lo"}, true}} {
		l := newLooker()
		l.f.Host, l.f.System.Root = &c.host, c.root
		if l.findTwin(); l.f.Unknown["duplicate"] == "" {
			t.Errorf("%+v", c)
		}
	}
}

// Routes are judged where weft keeps them, and ports to hosts are known.
func TestSwitchConfig(t *testing.T) {
	for text, want := range map[string]bool{"": true, "routes: false\nconfigure: false\n": false, "routes: false\n": true} {
		l := newLooker()
		l.f.Role = doctor.RoleSwitch
		l.switchConfig(write(t, t.TempDir()+"/switch.yaml", "topology: fat-tree:k=4\nnode: e0.0\nuser: root\n"+text))
		if l.f.Config.Error != "" || l.f.Plan == nil || l.f.Plan.Routes > 0 != want || len(l.toHosts) != 2 {
			t.Errorf("%q: %+v, %+v, %v", text, l.f.Config, l.f.Plan, l.toHosts)
		}
	}
}
