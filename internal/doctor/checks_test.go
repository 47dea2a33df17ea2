package doctor

import (
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"

	"weft/internal/overview"
)

func system() System {
	return System{Release: "6.18.44-x", Root: true, BTF: true, TCX: true}
}

// host is a host of which all is well.
func host() *Facts {
	f := &Facts{Role: RoleHost, Expected: true, System: system(), Clock: Clock{Year: 2026},
		Config: &Config{File: "/etc/weft/host.yaml", Topology: "fat-tree:k=4", Sprays: true, Signed: true, Carrier: "ipip", RateMbit: 1000,
			Keys: []KeyFile{{Path: "/etc/weft/k", Readable: true, User: "weft"}}},
		Daemon: Daemon{Answers: true, Process: 7},
		Devices: []Device{{Name: "p0", Present: true, Up: true, Carrier: true, MTU: 1500, SpeedMbit: 1000, WantRate: 1000,
			Offloads: map[string]bool{"gro": true, "gso": true, "tso": true, "tx": true}, Programs: map[string]bool{"weft-spray": true, "weft-steer": true}}},
		Settings: map[string]string{"net.ipv4.conf.all.rp_filter": "0", "net.ipv4.conf.p0.rp_filter": "2", "net.ipv4.conf.p0.forwarding": "0",
			"net.ipv4.tcp_sack": "1", "net.ipv4.tcp_window_scaling": "1", "net.ipv4.tcp_recovery": "1", "net.ipv4.tcp_rmem": "4096 131072 6291456",
			"net.ipv4.tcp_wmem": "4096 16384 4194304", "net.ipv4.tcp_available_congestion_control": "reno cubic"},
		Gateways: []Gateway{{Device: "p0", Addr: netip.MustParseAddr("10.0.0.1")}},
		Cables:   []Cable{{Device: "p0", Node: "e0.0", Expected: "e0.0"}},
		Answers:  make(map[netip.Addr]bool), Unknown: make(map[string]string)}
	h := &overview.Host{Mode: "offload", Encapsulation: "ipip", Topology: "fat-tree:k=4", State: "working", Address: "10.0.0.2",
		Reach: &overview.Reach{Racks: 7}, Failures: &overview.Failures{}, Offload: &overview.Offload{}}
	for i, name := range []string{"c1.1", "c1.2", "c2.1", "c2.2"} {
		via := netip.AddrFrom4([4]byte{10, 4, byte(1 + i/2), byte(1 + i%2)})
		h.Failures.Paths = append(h.Failures.Paths, overview.Path{To: "h0.0.2", Via: via, Bounce: name, State: "up"})
		f.Answers[via] = true
	}
	f.Host = h
	return f
}

// switch_ is a bouncing switch of which all is well.
func switch_() *Facts {
	f := &Facts{Role: RoleSwitch, Expected: true, System: system(), Clock: Clock{Year: 2026}, Config: &Config{File: "/etc/weft/switch.yaml"},
		Daemon: Daemon{Answers: true, Process: 9}, Settings: map[string]string{"net.ipv4.conf.all.rp_filter": "0", "net.ipv4.fib_multipath_hash_policy": "3"},
		Plan:    &Plan{Node: "c1.1", Bouncing: true, Routes: 4, Settings: []Setting{{"net.ipv4.fib_multipath_hash_policy", "3"}}},
		Unknown: make(map[string]string)}
	s := &overview.Switch{Switch: "c1.1", Topology: "fat-tree:k=4", Signed: true}
	for i, peer := range []string{"a0.2", "a1.2", "a2.2", "a3.2"} {
		name := "p" + string(rune('0'+i))
		f.Devices = append(f.Devices, Device{Name: name, Present: true, Up: true, Carrier: true, MTU: 1500, Decap: "ebpf"})
		f.Settings["net.ipv4.conf."+name+".rp_filter"], f.Settings["net.ipv4.conf."+name+".forwarding"] = "0", "1"
		s.Neighbours = append(s.Neighbours, overview.Neighbour{Port: name, Name: peer, State: "up", Why: "hears us, and we it", Hears: true})
	}
	f.Switch = s
	return f
}

// ruleset is a file of testdata, as nft -n -j list ruleset prints it.
func ruleset(t *testing.T, name string) []Chain {
	t.Helper()
	text, err := os.ReadFile("testdata/" + name + ".json")
	if err != nil {
		t.Fatal(err)
	}
	chains, err := ParseNFT(text)
	if err != nil {
		t.Fatal(err)
	}
	return chains
}

// fault is something that is wrong with facts that are else well.
type fault struct {
	check string
	base  func() *Facts
	spoil func(*Facts)
	cause string // is in the cause
}

func faults(t *testing.T) []fault {
	return []fault{
		{"kernel", host, func(f *Facts) { f.System.Release = "5.10.0-23-amd64" }, "need 5.15"},
		{"kernel", switch_, func(f *Facts) { f.System.BPF = "operation not supported" }, "does not take eBPF"},
		{"kernel", host, func(f *Facts) { f.Config.Gateway, f.System.TUN = true, "no such device" }, "/dev/net/tun"},
		{"kernel", host, func(f *Facts) { f.Config.Congestion, f.System.BTF = "weft_dctcp", false }, "does not describe its types"},
		{"privileges", host, func(f *Facts) { f.System.Missing = []string{"CAP_BPF"} }, "CAP_BPF"},
		{"privileges", switch_, func(f *Facts) { f.Config.Configures, f.System.Missing = true, []string{"CAP_BPF"} }, "CAP_BPF"},
		{"privileges", host, func(f *Facts) { f.Config.QCN, f.System.Missing = true, []string{"CAP_PERFMON"} }, "CAP_PERFMON"},
		{"privileges", host, func(f *Facts) {
			f.Config.Congestion, f.System.Missing = "weft_dctcp", []string{"CAP_PERFMON"}
		}, "CAP_PERFMON"},
		{"config", host, func(f *Facts) { f.Config.Error = "host.yaml:3: policy: \"no\" is unknown" }, "policy"},
		{"config", host, func(f *Facts) { f.Config, f.Daemon, f.Host = nil, Daemon{}, nil }, "no configuration file"},
		{"config", host, func(f *Facts) { f.Config.Misfits = []Misfit{{Text: "rp_filter cannot be read"}} }, "rp_filter cannot be read"},
		{"config", host, func(f *Facts) { f.Config.Misfits = []Misfit{{Key: "udp.name", Text: "udp.name: no host name"}} }, "no host name"},
		{"bouncing", host, func(f *Facts) { f.Host.Failures.Paths[1].State, f.Answers = "quarantined", nil }, "not come home from c1.2"},
		{"user", host, func(f *Facts) { f.Config.User = "user: nosuchuser does not exist" }, "nosuchuser"},
		{"keys", host, func(f *Facts) { f.Config.Keys[0].Error = "there is no such file" }, "no such file"},
		{"keys", host, func(f *Facts) { f.Config.Keys[0].Readable = false }, "user weft cannot read it"},
		{"keys", host, func(f *Facts) { f.Config.Keys[0].Others = true }, "every user"},
		{"keys", switch_, func(f *Facts) { f.Config.Keys = []KeyFile{{Readable: true, From: 1e9}} }, "no key is in force"},
		{"topology", host, func(f *Facts) { f.Config.Misfits = []Misfit{{Key: "topology", Text: "not this fabric"}} }, "not this fabric"},
		{"topology", host, func(f *Facts) { f.Config.Topology = "fat-tree:k=8" }, "the daemon goes by fat-tree:k=4"},
		{"address", host, func(f *Facts) { f.Config.Misfits = []Misfit{{Key: "address", Text: "10.9.0.2 is not on this machine"}} }, "10.9.0.2"},
		{"uplink", host, func(f *Facts) { f.Config.Misfits = []Misfit{{Key: "uplink", Text: "no such device eth9"}} }, "eth9"},
		{"uplink", host, func(f *Facts) { f.Devices[0] = Device{Name: "p0"} }, "no device p0"},
		{"uplink", host, func(f *Facts) { f.Devices[0].Up = false }, "p0 is down"},
		{"uplink", host, func(f *Facts) { f.Devices[0].Carrier = false }, "no carrier"},
		{"gateway", host, func(f *Facts) { f.Gateways[0].Failed = true }, "does not answer ARP"},
		{"daemon", host, func(f *Facts) { f.Daemon, f.Host = Daemon{}, nil }, "does not run"},
		{"daemon", host, func(f *Facts) { f.Daemon, f.Host = Daemon{Process: 7, Stopped: true}, nil }, "is stopped"},
		{"daemon", host, func(f *Facts) { f.Daemon, f.Host = Daemon{Process: 7, Error: "timeout"}, nil }, "timeout"},
		{"daemon", host, func(f *Facts) { f.Daemon, f.Host = Daemon{Leftover: true}, nil }, "crashed"},
		{"daemon", switch_, func(f *Facts) { f.Daemon, f.Switch = Daemon{}, nil }, "weft switch does not run"},
		{"firewall", switch_, func(f *Facts) { f.Firewall = ruleset(t, "drop-ipip") }, "IP-in-IP"},
		{"firewall", host, func(f *Facts) { f.Firewall = ruleset(t, "closed") }, "policy of chain input"},
		{"rp_filter", switch_, func(f *Facts) { f.Settings["net.ipv4.conf.p1.rp_filter"] = "1" }, "rp_filter of p1"},
		{"rp_filter", switch_, func(f *Facts) { f.Settings["net.ipv4.conf.all.rp_filter"] = "1" }, "rp_filter of p0, p1, p2, p3"},
		{"rp_filter", host, func(f *Facts) { f.Settings["net.ipv4.conf.p0.rp_filter"] = "1" }, "rp_filter of p0"},
		{"forwarding", switch_, func(f *Facts) { f.Settings["net.ipv4.conf.p2.forwarding"] = "0" }, "from p2"},
		{"programs", host, func(f *Facts) { f.Devices[0].Programs["weft-spray"] = false }, "weft-spray"},
		{"foreign", host, func(f *Facts) { f.Devices[0].Foreign = []Foreign{{"egress", "another's program 5"}} }, "program 5"},
		{"foreign", host, func(f *Facts) { f.Devices[0].XDP, f.Host.Failures.Paths[1].State = true, "quarantined" }, "XDP"},
		{"foreign", switch_, func(f *Facts) { f.Devices[1].Drops = []Foreign{{"egress", "a filter of flower drops packets"}} }, "flower"},
		{"decapsulation", switch_, func(f *Facts) {
			for i := range f.Devices {
				f.Devices[i].Decap = ""
			}
		}, "takes no outer header off"},
		{"decapsulation", switch_, func(f *Facts) { f.Devices[2].Decap = "" }, "comes in by p2"},
		{"routes", switch_, func(f *Facts) { f.Plan.Missing = []Missing{{"10.1.0.0/16", []string{"p1"}}} }, "1 of 4 destinations"},
		{"settings", switch_, func(f *Facts) { f.Settings["net.ipv4.fib_multipath_hash_policy"] = "0" }, "fib_multipath_hash_policy is 0"},
		{"ports", switch_, func(f *Facts) { f.Devices[3].Up = false }, "port p3 is down"},
		{"ports", switch_, func(f *Facts) { f.Devices[3].Carrier = false }, "no carrier"},
		{"ports", switch_, func(f *Facts) { f.Devices[3] = Device{Name: "swp3"} }, "no port swp3"},
		{"mtu", switch_, func(f *Facts) { f.Devices[1].MTU = 1400 }, "MTU of p1 is 1400"},
		{"mtu", host, func(f *Facts) { f.Devices[0].WantMTU = 1600 }, "the other end's is 1600"},
		{"queue", host, func(f *Facts) { f.Devices[0].Disturbed = "netem loses 1 %" }, "loses 1 %"},
		{"queue", switch_, func(f *Facts) { f.Devices[0].Rate, f.Devices[0].WantRate = 2, 20 }, "to 2 Mbit/s"},
		{"conntrack", host, func(f *Facts) { f.System.Conntrack, f.System.ConntrackMax = 1000, 1000 }, "table of tracked connections is full"},
		{"wiring", switch_, func(f *Facts) { f.Cables = []Cable{{"p0", "a3.3", "a0.2"}} }, "cabled to a3.3"},
		{"identity", switch_, func(f *Facts) {
			f.Switch.Neighbours[1].Hears, f.Switch.Neighbours[1].Why = false, "has never spoken: judged by its carrier"
			f.Switch.Rejected = map[string]uint64{"sender": 88}
		}, "a1.2 (port p1) calls itself by another name"},
		{"duplicate", host, func(f *Facts) { f.Twin = "02:00:00:00:00:01" }, "is a duplicate"},
		{"bouncing", host, func(f *Facts) { f.Host.Failures.Paths[1].State = "quarantined" }, "c1.2 answers a ping"},
		{"updates", host, func(f *Facts) {
			f.Host.Failures.Updates = &overview.Updates{Refused: "updates are refused: failures.keys are not the switches'"}
		}, "failures.keys"},
		{"bgp", host, func(f *Facts) {
			f.Host.BGP = &overview.BGP{Neighbors: []struct {
				Neighbor    netip.Addr `json:"neighbor"`
				Established bool       `json:"established"`
			}{{netip.MustParseAddr("10.0.0.1"), false}}}
		}, "no session"},
		{"path_mtu", host, func(f *Facts) {
			f.Host.Racks = []overview.Rack{{Rack: "e3.1", MTU: 1380, Why: "of packets up to 1500 bytes only those up to 1400 come home by c1.1: a link on the way has a smaller MTU, or loses longer packets"}}
		}, "c1.1"},
		{"links", host, func(f *Facts) {
			f.Host.Failures.Blamed = []overview.Blame{{Places: []string{"a0.2-c1.1"}, Kinds: []string{"link"}, Why: "probes not answered"}}
		}, "link a0.2-c1.1"},
		{"links", switch_, func(f *Facts) {
			f.Switch.Neighbours[0].State, f.Switch.Neighbours[0].Why = "down", "no hello for 150 ms"
		}, "port p0 to a0.2 is down"},
		{"racks", host, func(f *Facts) {
			f.Host.Racks = []overview.Rack{{Rack: "e3.1", Plain: true, Why: "no request to its hosts came back"}}
		}, "rack e3.1"},
		{"status", host, func(f *Facts) { f.Host.State, f.Host.Trouble = "out of the way", "the route cannot be set" }, "out of the way"},
		{"status", switch_, func(f *Facts) { f.Switch.MeterError = "no" }, "meters cannot be read"},
		{"clock", host, func(f *Facts) { f.Clock.Year = 1970 }, "1970"},
		{"clock", host, func(f *Facts) {
			f.Clock.Unsynced, f.Config.Keys = true, append(f.Config.Keys, KeyFile{Readable: true, From: 1e9})
		}, "keeps this machine's clock"},
		{"link_speed", host, func(f *Facts) { f.Devices[0].SpeedMbit = 100 }, "100 Mbit/s"},
		{"link_speed", host, func(f *Facts) { f.Devices[0].Half = true }, "half duplex"},
		{"tcp", host, func(f *Facts) { f.Settings["net.ipv4.tcp_sack"] = "0" }, "tcp_sack"},
		{"tcp", host, func(f *Facts) { f.Settings["net.ipv4.tcp_recovery"] = "0" }, "RACK"},
		{"tcp", host, func(f *Facts) { f.Settings["net.ipv4.tcp_rmem"] = "4096 8192 16384" }, "16384 bytes"},
		{"congestion_control", host, func(f *Facts) { f.Config.Congestion = "bbr" }, "bbr"},
		{"offloads", host, func(f *Facts) { f.Devices[0].Offloads["gro"] = false }, "generic-receive-offload"},
		{"memlock", host, func(f *Facts) {
			f.System.Release, f.System.Memlock, f.System.Missing = "5.10.1", 65536, []string{"CAP_SYS_RESOURCE"}
		}, "64 KB"},
	}
}

// What is wrong is found by the check that is for it, with cause and fix, and named first.
func TestExamine_eachFaultIsNamed(t *testing.T) {
	seen := make(map[string]bool)
	for _, c := range faults(t) {
		seen[c.check] = true
		f := c.base()
		c.spoil(f)
		all := Examine(f)
		i := slices.IndexFunc(all, func(f Finding) bool { return f.Check == c.check && !f.OK })
		if i < 0 || !strings.Contains(all[i].Cause, c.cause) {
			t.Errorf("%s: no %q among\n%s", c.check, c.cause, Text("x", all))
			continue
		}
		if all[i].Fix == "" {
			t.Errorf("%s: %q has no fix", c.check, all[i].Cause)
		}
		if i > 0 && c.check != "memlock" { // of a kernel that old more is wrong
			t.Errorf("%s is not the first:\n%s", c.check, Text("x", all))
		}
	}
	for _, name := range Names() {
		if !seen[name] {
			t.Errorf("no fault of the table is for check %s", name)
		}
	}
}

// Root that has only what a daemon keeps, as in a container, becomes no other user.
func TestExamine_containerOfThreeCapabilities(t *testing.T) {
	f := host()
	f.Config.Becomes = true
	f.System.Missing = []string{"CAP_SYS_ADMIN", "CAP_SETUID", "CAP_SETGID", "CAP_PERFMON"}
	if text := Text("x", Examine(f)); strings.Contains(text, "CAP_SETUID") || !strings.Contains(text, "cannot clear away what a crash has left") {
		t.Errorf("with three capabilities:\n%s", text)
	}
	f.System.Missing = []string{"CAP_SETUID"}
	if text := Text("x", Examine(f)); !strings.Contains(text, "CAP_SETUID") {
		t.Errorf("without CAP_SETUID alone:\n%s", text)
	}
}

// Where all is well nothing is wrong, and each check of the role says something.
func TestExamine_allIsWell(t *testing.T) {
	own := host() // an operator's program at a host whose packets take their paths is meant to be
	own.Devices[0].XDP, own.Devices[0].Drops = true, []Foreign{{"egress", "a filter of flower drops packets"}}
	mixed := switch_() // an edge switch whose hosts have another MTU
	mixed.Plan.Bouncing, mixed.Devices[0].MTU = false, 9000
	idle := switch_() // a host is switched off
	idle.Devices[3].Carrier, idle.Devices[3].ToHost = false, true
	few := switch_() // a switch that others set up
	few.System.Missing = []string{"CAP_BPF", "CAP_SYS_ADMIN", "CAP_SETUID", "CAP_PERFMON"}
	plain := switch_() // routes are another's
	plain.Plan.Routes = 0
	for _, f := range []*Facts{host(), switch_(), own, mixed, idle, few, plain} {
		all := Examine(f)
		if n := Wrong(all); n != 0 {
			t.Errorf("%s: %s", f.Role, Text("x", all))
		}
		for _, c := range checks {
			there := slices.ContainsFunc(all, func(f Finding) bool { return f.Check == c.name && f.Cause != "" })
			if want := c.role == "" || c.role == f.Role; there != want {
				t.Errorf("%s: check %s is there: %t, want %t", f.Role, c.name, there, want)
			}
		}
		if text := Text("host x", all); !strings.HasPrefix(text, "host x: WELL, ") {
			t.Error(text)
		}
	}
}

// A root comes before what follows from it, whichever order the checks have.
func TestExamine_rootFirst(t *testing.T) {
	f := switch_()
	f.Switch.Neighbours[0].State, f.Switch.Neighbours[0].Why = "down", "no hello for 150 ms"
	f.Settings["net.ipv4.conf.all.rp_filter"] = "1"
	f.Firewall = ruleset(t, "drop-hellos")
	f.Settings["net.ipv4.fib_multipath_hash_policy"] = "0"
	var got []string
	for _, g := range Examine(f) {
		if !g.OK {
			got = append(got, g.Check)
		}
	}
	if want := []string{"firewall", "rp_filter", "links", "settings"}; !slices.Equal(got, want) {
		t.Errorf("order is %v, want %v", got, want)
	}
}

// A daemon that answers has what it needs: that root lacks capabilities here is the least.
func TestExamine_capabilities(t *testing.T) {
	for _, answers := range []bool{true, false} {
		f := host()
		f.System.Missing, f.Daemon.Answers = []string{"CAP_NET_ADMIN"}, answers
		f.System.BPF = "operation not permitted"
		all, _ := askPrivileges(f)
		if kernel, _ := askKernel(f); len(kernel) != 1 || len(all) != 1 || kernel[0].Weight != all[0].Weight {
			t.Errorf("answers %t: %+v", answers, kernel)
		}
		if want := map[bool]weight{true: slows, false: stops}[answers]; len(all) != 1 || all[0].Weight != want {
			t.Errorf("answers %t: %+v, want %s", answers, all, want)
		}
	}
}

// What could not be found out is neither wrong nor well.
func TestExamine_unknown(t *testing.T) {
	f := host()
	f.Unknown["firewall"] = "it takes root"
	f.Firewall = ruleset(t, "closed")
	all := Examine(f)
	i := slices.IndexFunc(all, func(f Finding) bool { return f.Check == "firewall" })
	if i < 0 || !all[i].OK || all[i].Skipped != "it takes root" {
		t.Errorf("%+v", all)
	}
	if text := Text("x", all); !strings.Contains(text, "not looked at: firewall (it takes root)") {
		t.Error(text)
	}
}

// Without a daemon only what a configuration needs is looked at.
func TestExamine_offline(t *testing.T) {
	f := host()
	f.Offline, f.Daemon, f.Host = true, Daemon{}, nil
	f.Config.User = "user: nosuchuser does not exist"
	all := Examine(f)
	if Wrong(all) != 1 || all[0].Check != "user" {
		t.Errorf("%s", Text("x", all))
	}
}
