package interop

import (
	"slices"
	"strings"
	"syscall"
	"testing"

	"weft/internal/slowtest"
	"weft/lab"
	"weft/topology"
)

// traffic goes on while something fails: connections of the kernels, and programs.
type traffic struct {
	streams []*stream
	fetches []*fetches
}

// moves waits until all of it has made progress.
func (l traffic) moves(what string) {
	for _, s := range l.streams {
		s.n.Helper()
		s.moves(what, enough)
	}
	for _, f := range l.fetches {
		f.n.Helper()
		f.moves(what)
	}
}

// end ends it: every byte must have arrived, and no connection been reset.
func (l traffic) end() {
	for _, s := range l.streams {
		s.n.Helper()
		s.end()
	}
	for _, f := range l.fetches {
		f.n.Helper()
		f.end()
	}
}

// mediumLinks leave processors of any kind some time for hellos.
func mediumLinks(c *lab.Config) {
	slowLinks(c)
	c.RateMbit, c.QueueBytes = 100, 256<<10
}

// sprayed are hosts of the failures' tests, a pod each, and how they spray: the
// first two talk to each other, and the last two.
var sprayed = []struct{ host, config string }{
	{hostA, "policy: presto\n"},
	{hostB, "policy: presto\n"},
	{plain, "mode: offload\npolicy: drb\n"},
	{"h3.0.2", "mode: offload\npolicy: drb\n"},
}

// The core switch that fails, and its link to the first host's pod.
const (
	deadCore = "c1.1"
	deadLink = "a0.2-" + deadCore
)

// deadLinks are the core's links to the pods of the hosts.
var deadLinks = []string{deadLink, "a1.2-" + deadCore, "a2.2-" + deadCore, "a3.2-" + deadCore}

// spray starts the daemons and the traffic between them.
func (n *network) spray() (daemons []*daemon, l traffic) {
	n.Helper()
	for _, s := range sprayed {
		config := s.config
		if n.lab.Config.SRv6 {
			config += "encapsulation: srv6\n"
		}
		daemons = append(daemons, n.weft(s.host, config))
	}
	for i := 0; i < len(sprayed); i += 2 {
		l.streams = append(l.streams, n.stream(sprayed[i].host, sprayed[i+1].host))
		l.fetches = append(l.fetches, n.fetch(sprayed[i].host, sprayed[i+1].host))
	}
	l.moves("at first")
	return daemons, l
}

// part ends the traffic and the daemons, which leave nothing behind.
func (n *network) part(daemons []*daemon, l traffic, before []string) {
	n.Helper()
	l.end()
	for i, d := range daemons {
		d.end(syscall.SIGTERM)
		if out := n.must(d.node, binary(n.T), "host", "--cleanup"); out != "clean-up: nothing was left\n" {
			n.Errorf("%s: %s", d.node, out)
		}
		n.wantUnchanged(d.node, before[i])
	}
}

func (n *network) configurations() (all []string) {
	n.Helper()
	for _, s := range sprayed {
		all = append(all, n.configuration(s.host))
	}
	return all
}

func (n *network) fail(target string, mode lab.FailureMode) {
	n.Helper()
	if _, err := n.lab.Fail(target, mode); err != nil {
		n.Fatal(err)
	}
}

func (n *network) heal() {
	n.Helper()
	if _, err := n.lab.Heal(); err != nil {
		n.Fatal(err)
	}
}

// Transfers outlive what fails, whoever finds out; the status names it and says why
// while it is so, and not after it.
func TestFailures_underway(t *testing.T) {
	slowtest.System(t)
	n := newNetwork(t, "e", mediumLinks)
	n.run("probes alone", fetchTools, (*network).probesAlone)
	n.run("agents", fetchTools, (*network).withAgents)
}

func TestFailures_underwayBySRv6(t *testing.T) {
	slowtest.System(t)
	slowtest.Release(t, "stack.TestHost_watchesItsPathsBySRv6", "the kernel's carriers; TestRun_everyPolicy and TestHost_learnsSIDsFromFRR have them, TestFailures_underway what fails")
	n := newNetwork(t, "s", mediumLinks, func(c *lab.Config) { c.SRv6 = true })
	n.run("probes alone", fetchTools, (*network).probesAlone)
	n.run("agents", fetchTools, (*network).withAgents)
}

func (n *network) withAgents() {
	before := n.configurations()
	agents := n.agents(n.switches()...)
	daemons, l := n.spray()
	n.adjacent(agents)
	edge := agents[0]

	n.fail(deadLink, lab.FailLoud)
	for _, d := range daemons {
		d.wasTold(deadLink, deadLink)
	}
	edge.tells("a0.2", deadLink)
	if text := n.must(edge.node, binary(n.T), "status", "--all"); !strings.Contains(text, "down: "+deadLink) || !strings.Contains(text, "neighbour") {
		n.Errorf("weft status of %s does not say that %s is down:\n%s", edge.node, deadLink, text)
	}
	l.moves("a link is down")
	n.heal()
	n.settles(agents, daemons, l, "the link is up")

	n.fail(deadCore, lab.FailSilent)
	for i, d := range daemons {
		d.wasTold(deadLinks[i], "-"+deadCore)
	}
	edge.tells("a0.2", deadLink)
	l.moves("a core is silent")
	n.heal()
	n.settles(agents, daemons, l, "the core is back")

	n.crash(agents, daemons, l)
	n.part(daemons, l, before)
	for _, a := range agents {
		a.signal(syscall.SIGTERM)
	}
}

// settles waits until all is well for everybody.
func (n *network) settles(agents []*agent, daemons []*daemon, l traffic, what string) {
	n.Helper()
	n.adjacent(agents)
	for _, d := range daemons {
		d.isWell()
	}
	l.moves(what)
}

// crash kills agents, so that switches are taken for dead that still forward, and
// starts them anew; last that of a rack, to which there is no way around.
func (n *network) crash(agents []*agent, daemons []*daemon, l traffic) {
	n.Helper()
	var some []*agent
	for _, a := range agents {
		if a.node == "a0.2" || a.node == deadCore {
			some = append(some, a)
			a.signal(syscall.SIGKILL)
		}
	}
	const uplink = "e0.0-a0.2"
	daemons[0].sees("was told that "+uplink+" is down", func(s hostStatus) bool {
		return slices.Contains(s.Failures.Updates.Down, uplink)
	})
	l.moves("agents are dead")
	n.restart(some)
	n.settles(agents, daemons, l, "agents are back")

	agents[0].signal(syscall.SIGKILL)
	n.restart(agents[:1])
	n.settles(agents, daemons, l, "the rack's agent is back")
}

func (n *network) probesAlone() {
	before := n.configurations()
	daemons, l := n.spray()

	n.fail(deadLink, lab.FailLoud)
	for _, d := range daemons[:2] {
		d.foundOut(deadLink) // of which the others need not know
	}
	l.moves("a link is down")
	n.heal()
	n.settles(nil, daemons, l, "the link is up")

	n.fail(deadCore, lab.FailSilent)
	for i, d := range daemons {
		d.foundOut(deadLinks[i])
	}
	l.moves("a core is silent")
	n.heal()
	n.settles(nil, daemons, l, "the core is back")
	n.part(daemons, l, before)
}

// otherKinds are fabrics that are no fat-trees, two hosts in different parts of
// each, and a switch in their middle that fails.
var otherKinds = []struct{ letter, spec, from, to, spine string }{
	{"f", "vl2:d0=2,d1=4,d2=4,hosts=2", "h0.0.2", "h0.3.3", "c1.1"},
	{"g", "leaf-spine:leaves=3,spines=3,hosts=2", "h0.0.2", "h0.2.3", "a0.1"},
}

// weft host finds its way in every kind of fabric, and around what fails there.
func TestFailures_otherKinds(t *testing.T) {
	slowtest.System(t)
	for _, k := range otherKinds {
		t.Run(k.spec, func(t *testing.T) {
			top, err := topology.Parse(k.spec)
			if err != nil {
				t.Fatal(err)
			}
			n := newNetwork(t, k.letter, mediumLinks, func(c *lab.Config) { c.Topology = top })
			needs(t, fetchTools...)
			agents := n.agents(n.switches()...)
			var daemons []*daemon
			for _, host := range []string{k.from, k.to} {
				d := n.weft(host, "topology: "+k.spec+"\n")
				daemons = append(daemons, d)
				d.findsItsPlace()
			}
			l := traffic{[]*stream{n.stream(k.from, k.to)}, []*fetches{n.fetch(k.from, k.to)}}
			l.moves("at first")
			n.adjacent(agents)

			link := n.linkBetween(k.from, k.to, k.spine)
			n.fail(link, lab.FailLoud)
			for _, d := range daemons {
				d.wasTold(link, link)
			}
			l.moves("a link is down")
			n.heal()
			n.settles(agents, daemons, l, "the link is up")

			n.fail(k.spine, lab.FailSilent)
			for _, d := range daemons {
				d.sees("takes links of "+k.spine+" for down", func(s hostStatus) bool {
					return len(s.Failures.Down) > 0 && onlyEnd(s.Failures.Down, "-"+k.spine)
				})
			}
			l.moves("a spine is silent")
			n.heal()
			n.settles(agents, daemons, l, "the spine is back")
			l.end()
			for _, d := range daemons {
				d.end(syscall.SIGTERM)
			}
			for _, a := range agents {
				a.signal(syscall.SIGTERM)
			}
		})
	}
}

// Where no probe has ever come home a host says what to look at, and not after one has.
func TestFailures_fromTheStart(t *testing.T) {
	top, err := topology.Parse("leaf-spine:leaves=2,spines=2,hosts=1")
	if err != nil {
		t.Fatal(err)
	}
	n := newNetwork(t, "h", mediumLinks, func(c *lab.Config) { c.Topology = top })
	n.fail("a0.0", lab.FailSilent)
	n.fail("a0.1", lab.FailSilent)
	d := n.weft("h0.0.2", "topology: "+top.String()+"\nfailures: {updates: false, interval: 30ms}\n")
	const hint = "no boomerang has ever come home from a0.0, a0.1: "
	d.says(hint)
	d.sees("says that nothing has come home", func(s hostStatus) bool {
		return len(s.Racks) == 1 && s.Racks[0].Plain && strings.HasPrefix(s.Racks[0].Why, hint)
	})
	n.heal()
	d.sees("says that no more", func(s hostStatus) bool { return len(s.Racks) == 0 })
	d.end(syscall.SIGTERM)
	if said := strings.Count(d.messages(), hint); said != 1 {
		t.Errorf("said %d times", said)
	}
}

// findsItsPlace compares with the fabric what a daemon has found out.
func (d *daemon) findsItsPlace() {
	d.n.Helper()
	var s hostStatus
	d.n.ask(d.node, &s)
	top := d.n.lab.Config.Topology
	rack := top.EdgeOf(d.n.node(d.node).ID)
	if s.Address != d.n.addr(d.node) || s.Uplink != "p0" || s.Gateway != top.Node(rack).Addr.String() {
		d.n.Errorf("%s: address %s, uplink %s, gateway %s; want %s, p0, %s", d.node, s.Address, s.Uplink, s.Gateway, d.n.addr(d.node), top.Node(rack).Addr)
	}
}

// linkBetween is a link of a switch that is on a path between two hosts.
func (n *network) linkBetween(from, to, of string) string {
	n.Helper()
	top := n.lab.Config.Topology
	for _, p := range top.Ports(n.node(of).ID) {
		if top.OnPaths(p.Link, n.node(from).ID, n.node(to).ID) {
			return top.LinkName(p.Link)
		}
	}
	n.Fatalf("%s has no link between %s and %s", of, from, to)
	return ""
}
