package interop

import (
	"strings"
	"syscall"
	"testing"

	"weft/internal/slowtest"
	"weft/lab"
)

// slowLinks are such that a transfer is under way for long, and that
// super-segments cross whole.
func slowLinks(c *lab.Config) {
	c.Unlimited, c.RateMbit, c.BurstBytes, c.QueueBytes = false, 200, 64<<10, 512<<10
}

// enough is what must arrive for a transfer to be said to go on, in bytes: more
// than was on its way, 512 KB in a queue on each link and what kernels hold.
const enough = 4_000_000

// What happens to daemons while transfers go on, these do not notice.
func TestGateway_underway(t *testing.T) {
	slowtest.System(t)
	n := newNetwork(t, "b", slowLinks)
	n.run("reload", nil, (*network).reload)
	n.run("end", nil, (*network).end)
	n.run("kill", nil, (*network).kill)
}

// reload changes policies.
func (n *network) reload() {
	a, b := n.weft(hostA, "policy: presto\n"), n.weft(hostB, "policy: presto\n")
	there, back := n.stream(hostA, hostB), n.stream(hostB, hostA)
	there.moves("presto", enough)
	for _, policy := range []string{"drb", "ecmp", "flowcell-drb", "presto"} {
		for _, d := range []*daemon{a, b} {
			if says := d.reload("policy: " + policy + "\n"); !strings.Contains(says, "reloaded: ") {
				n.Fatal(says)
			}
		}
		there.moves(policy, enough)
		back.moves(policy, enough)
		if got := a.status()["policy"]; got != policy {
			n.Errorf("the policy is %s, want %s", got, policy)
		}
	}
	if says := a.reload("policy: bogus\n"); !strings.Contains(says, "reload refused") {
		n.Error(says)
	}
	there.moves("refused", enough)
	there.end()
	back.end()
	if r := a.count("reloads"); r != 4 {
		n.Errorf("%d reloads", r)
	}
}

// end ends daemons in the middle of a transfer, which goes on by the kernels
// alone, and nothing tells that they were there. Then they begin in its middle.
func (n *network) end() {
	before := map[string]string{hostA: n.configuration(hostA), hostB: n.configuration(hostB)}
	there, back := n.stream(hostA, hostB), n.stream(hostB, hostA)
	there.moves("before", enough)
	a, b := n.weft(hostA, ""), n.weft(hostB, "")
	there.moves("with weft", enough)
	for _, d := range []*daemon{a, b} {
		d.end(syscall.SIGTERM)
		n.wantUnchanged(d.node, before[d.node])
		there.moves("after the end on "+d.node, enough)
		back.moves("after the end on "+d.node, enough)
	}
	a = n.weft(hostA, "")
	there.moves("again", enough)
	there.end()
	back.end()
	a.end(syscall.SIGTERM)
	n.wantUnchanged(hostA, before[hostA])
}

// kill kills daemons in the middle of a transfer. Within a second the kernel has
// its packets again; a restart mends what is left; so does a clean-up.
func (n *network) kill() {
	before := n.configuration(hostA)
	a, b := n.weft(hostA, ""), n.weft(hostB, "")
	there, back := n.stream(hostA, hostB), n.stream(hostB, hostA)
	there.moves("with weft", enough)
	a.end(syscall.SIGKILL)
	there.moves("sender killed", enough)
	back.moves("receiver killed", enough)
	n.connect(hostA, hostB, n.addr(hostB)).exchange(1_000_000)
	a = n.weft(hostA, "")
	there.moves("restarted", enough)
	back.moves("restarted", enough)
	a.end(syscall.SIGKILL)
	b.end(syscall.SIGKILL)
	there.moves("both killed", enough)
	back.moves("both killed", enough)
	for _, node := range []string{hostA, hostB} {
		if out := n.must(node, binary(n.T), "host", "--cleanup"); !strings.HasPrefix(out, "clean-up: ") || strings.Contains(out, "nothing") {
			n.Errorf("%s: %s", node, out)
		}
		if out := n.must(node, binary(n.T), "host", "--cleanup"); out != "clean-up: nothing was left\n" {
			n.Errorf("%s: a second clean-up: %s", node, out)
		}
	}
	there.moves("cleaned up", enough)
	back.moves("cleaned up", enough)
	there.end()
	back.end()
	n.wantUnchanged(hostA, before)
}
