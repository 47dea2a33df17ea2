package switchd

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"

	"weft/internal/slowtest"
)

// sh runs a command in a node's namespace, and returns why it failed.
func (l *testLab) sh(node, command string) (string, error) {
	var out []byte
	err := l.Do(l.id(node), func() (err error) {
		out, err = exec.Command("sh", "-c", command).CombinedOutput()
		return err
	})
	return string(out), err
}

// detach removes a program from a hook of a port, from outside.
func (l *testLab) detach(node, port, program string, hook ebpf.AttachType) {
	l.t.Helper()
	if err := l.Do(l.id(node), func() error { return removeProgram(port, program, hook) }); err != nil {
		l.t.Fatalf("detach %s from %s of %s: %v", program, port, node, err)
	}
}

func removeProgram(port, program string, hook ebpf.AttachType) error {
	prog, index, err := programAt(port, program, hook)
	if err != nil {
		return err
	}
	defer prog.Close()
	return link.RawDetachProgram(link.RawDetachProgramOptions{Target: index, Program: prog, Attach: hook})
}

// programAt opens a program at a hook by its name.
func programAt(port, program string, hook ebpf.AttachType) (prog *ebpf.Program, index int, err error) {
	if index, err = portIndex(port); err != nil {
		return nil, 0, err
	}
	chain, err := link.QueryPrograms(link.QueryOptions{Target: index, Attach: hook})
	if err != nil {
		return nil, 0, err
	}
	for _, p := range chain.Programs {
		if prog, err = ebpf.NewProgramFromID(p.ID); err != nil {
			return nil, 0, err
		}
		if info, err := prog.Info(); err == nil && info.Name == program {
			return prog, index, nil
		}
		prog.Close()
	}
	return nil, 0, fmt.Errorf("%s has no program %s", port, program)
}

// soon waits for something that takes about 50 ms, and returns how long it took. On a
// busy machine that may be longer.
func (l *testLab) soon(what string, ok func() bool) time.Duration {
	l.t.Helper()
	start := time.Now()
	for time.Since(start) < 5*time.Second {
		if ok() {
			return time.Since(start)
		}
		time.Sleep(2 * time.Millisecond)
	}
	l.t.Errorf("not within 5 s: %s", what)
	return 5 * time.Second
}

// Whatever is taken from a switch is back within a second, with a sentence in the
// log, by an agent that has two capabilities.
func TestRun_heals(t *testing.T) {
	l := upLab(t, "h", "fat-tree:k=2")
	a := find(t, l.top, "a0.1")
	p := l.child(a.Name, "topology: fat-tree:k=2\nhello: 20ms\nmeter: {enabled: true}\n")
	l.within("it runs", func() bool { return p.status().Switch == a.Name })
	for _, d := range []struct{ what, damage, whole, says string }{
		{"the address", "ip addr del %s/32 dev lo", "ip addr show dev lo | grep -q 'inet %s/32'", "put back addresses of lo"},
		{"strict filtering of all", "sysctl -w net.ipv4.conf.all.rp_filter=1", "test $(sysctl -n net.ipv4.conf.all.rp_filter) = 0", "set net.ipv4.conf.all.rp_filter to 0, which was 1"},
		{"strict filtering of a port", "sysctl -w net.ipv4.conf.p1.rp_filter=1", "test $(sysctl -n net.ipv4.conf.p1.rp_filter) = 0", "set net.ipv4.conf.p1.rp_filter to 0, which was 1"},
		{"the hash", "sysctl -w net.ipv4.fib_multipath_hash_policy=0", "test $(sysctl -n net.ipv4.fib_multipath_hash_policy) = 3", "set net.ipv4.fib_multipath_hash_policy to 3, which was 0"},
		{"routes", "ip route flush proto 87", "ip route | grep -q ^default && ip route | grep -q ^10.0.0.0/24", "routes that were missing"},
		{"another's route", "ip route replace 10.0.0.0/24 dev lo proto static", "ip route | grep ^10.0.0.0/24 | grep -q 'dev p0 proto 87'", "routes that were missing"},
		{"a port down and up", "ip link set p0 down; ip link set p0 up", "ip route | grep -q '^10.0.0.0/24.*dev p0'", ""}, // as the topology has it
		{"lo", "ip link set lo down", "ip link show dev lo | grep -q LOOPBACK,UP", "set lo up"},
		{"a new device", "ip link del p1; ip link add p1 type veth peer name far && ip link set far up",
			"ip route | grep -q '^default.*dev p1' && ip link show dev p1 | grep -q ,UP", "set port p1 up, which has a new device"},
	} {
		t.Run(d.what, func(t *testing.T) {
			of := func(command string) string { return strings.ReplaceAll(command, "%s", a.Addr.String()) }
			before := strings.Count(p.log.String(), d.says)
			if out, err := l.sh(a.Name, of(d.damage)); err != nil {
				t.Fatalf("%s: %v, %s", d.damage, err, out)
			}
			whole := func() bool { _, err := l.sh(a.Name, of(d.whole)); return err == nil }
			took := l.soon(d.what+" is back", func() bool {
				return (d.says == "" || strings.Count(p.log.String(), d.says) > before) && whole()
			})
			t.Logf("%s: %v", d.what, took)
		})
	}
	for _, d := range []struct {
		port, name, says string
		hook             ebpf.AttachType
	}{
		{"p0", "weft_decap", "repaired: attached weft-decap at ingress of p0 again", ebpf.AttachTCXIngress},
		{"p0", "weft_meter", "repaired: attached weft-meter at egress of p0 again", ebpf.AttachTCXEgress},
	} {
		l.detach(a.Name, d.port, d.name, d.hook)
		took := l.soon(d.name+" is back", func() bool {
			err := l.Do(a.ID, func() error {
				prog, _, err := programAt(d.port, d.name, d.hook)
				if err == nil {
					prog.Close()
				}
				return err
			})
			return err == nil && p.log.has(d.says)
		})
		t.Logf("%s: %v", d.name, took)
	}
	// The new device of before has all that the old one had.
	for says, hook := range map[string]ebpf.AttachType{"weft_decap": ebpf.AttachTCXIngress, "weft_meter": ebpf.AttachTCXEgress} {
		if err := l.Do(a.ID, func() error { _, _, err := programAt("p1", says, hook); return err }); err != nil {
			t.Errorf("a new device: %v", err)
		}
	}
	s := p.status()
	if s.Repairs == nil || s.Repairs.Count < 11 || len(s.Repairs.Last) == 0 || s.Repairs.Trouble != "" {
		t.Errorf("repairs %+v", s.Repairs)
	}
	if s.MeterError != "" || s.CounterError != "" || s.Decap == nil || len(s.Meters) != 2 {
		t.Errorf("decap %+v, meters %+v, %s %s", s.Decap, s.Meters, s.MeterError, s.CounterError)
	}
}

// The same of what labels need, and of the tables and rules of virtual spines.
func TestRun_healsLabelsAndVirtualSpines(t *testing.T) {
	slowtest.System(t)
	for _, c := range []struct {
		letter, spec, node, config string
		damages                    [][3]string // damage, what is whole, what is said
		programs                   map[string]ebpf.AttachType
	}{
		{"i", "fat-tree:k=2", "e0.0", "encap: srv6\n", [][3]string{
			{"ip -6 route flush proto 87", "ip -6 route show 5f00:200::/24 | grep -q seg6local", "routes"},
			{"ip -6 addr flush dev lo scope global; ip -6 addr flush dev p1", "ip -6 addr show dev p1 | grep -q inet6", "routes"},
			{"sysctl -w net.ipv6.conf.all.forwarding=0", "test $(sysctl -n net.ipv6.conf.all.forwarding) = 1", "set net.ipv6.conf.all.forwarding to 1, which was 0"},
		}, map[string]ebpf.AttachType{"weft_edge": ebpf.AttachTCXIngress, "weft_class": ebpf.AttachTCXEgress}},
		{"j", "vl2:d0=2,d1=4,d2=4,hosts=2", "c1.1", "", [][3]string{
			{"ip rule del priority 5760 fwmark 1/0x7ff", "ip rule | grep -q 'fwmark 0x1/0x7ff'", "put back rules"},
			{"ip route flush table 5800", "ip route show table 5800 | grep -q dev", "routes"},
		}, nil},
	} {
		l := upLab(t, c.letter, c.spec)
		p := l.child(c.node, "topology: "+c.spec+"\nhello: 20ms\n"+c.config)
		l.within("it runs", func() bool { return p.status().Switch != "" })
		for _, d := range c.damages {
			if _, err := l.sh(c.node, d[1]); err != nil {
				t.Fatalf("%s: %s is not so before", c.node, d[1])
			}
			before := strings.Count(p.log.String(), d[2])
			if out, err := l.sh(c.node, d[0]); err != nil {
				t.Fatalf("%s: %v, %s", d[0], err, out)
			}
			l.soon("after "+d[0], func() bool {
				_, err := l.sh(c.node, d[1])
				return err == nil && strings.Count(p.log.String(), d[2]) > before
			})
		}
		for name, hook := range c.programs {
			l.detach(c.node, "p0", name, hook)
			l.soon(name+" is back", func() bool {
				err := l.Do(l.id(c.node), func() error { _, _, err := programAt("p0", name, hook); return err })
				return err == nil && p.log.has("attached "+strings.ReplaceAll(name, "_", "-"))
			})
		}
		if s := p.status(); s.Repairs.Trouble != "" || s.CounterError != "" || c.config != "" && (s.Edge == nil || s.Labels == nil) {
			t.Errorf("%s: %+v, edge %+v, labels %+v, %s", c.node, s.Repairs, s.Edge, s.Labels, s.CounterError)
		}
	}
}

// What the agent cannot mend it says, with the command that does.
func TestRun_saysWhatItCannotMend(t *testing.T) {
	slowtest.System(t)
	l := upLab(t, "w", "fat-tree:k=2")
	p := l.child("a0.1", "topology: fat-tree:k=2\nhello: 20ms\n")
	l.within("it runs", func() bool { return p.status().Switch == "a0.1" })
	for _, d := range []struct{ damage, says, mend string }{
		{"ip link set p1 down && ip link set p1 name x1", "ip link set x1 name p1", "ip link set x1 name p1 && ip link set p1 up"},
		{"ip link set p1 down", "port p1 has been set down and stays so until: ip link set p1 up", "ip link set p1 up"},
	} {
		before := strings.Count(p.log.String(), "all is right again")
		if out, err := l.sh("a0.1", d.damage); err != nil {
			t.Fatalf("%s: %v, %s", d.damage, err, out)
		}
		l.soon("it says "+d.says, func() bool { return p.log.has(d.says) && p.status().Repairs.Trouble != "" })
		if _, err := l.sh("a0.1", "ip route | grep -q '^10.0.0.0/24.*dev p0'"); err != nil {
			t.Errorf("after %s the other port has no route", d.damage)
		}
		if out, err := l.sh("a0.1", d.mend); err != nil {
			t.Fatalf("%s: %v, %s", d.mend, err, out)
		}
		l.soon("all is right after "+d.mend, func() bool {
			_, err := l.sh("a0.1", "ip route | grep -q '^default.*dev p1'")
			return err == nil && strings.Count(p.log.String(), "all is right again") > before
		})
	}
}
