package fabric

import (
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	"github.com/vishvananda/netlink"

	"weft/internal/balance"
	"weft/internal/kernel"
	"weft/internal/kernel/kerneltest"
	"weft/topology"
)

// openRoutes opens the routes of a namespace.
func openRoutes(t testing.TB, ns string, p NodePlan) *Routes {
	t.Helper()
	var r *Routes
	err := kernel.InNamespace(ns, func() (err error) {
		r, err = OpenRoutes(p)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r
}

func setRoutes(t testing.TB, r *Routes, p NodePlan) int {
	t.Helper()
	n, err := r.Set(p)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// portFlag sets a port up or down from inside a namespace.
func portFlag(t testing.TB, ns, port string, up bool) {
	t.Helper()
	err := kernel.InNamespace(ns, func() error {
		link, err := netlink.LinkByName(port)
		if err != nil {
			return err
		}
		if up {
			return netlink.LinkSetUp(link)
		}
		return netlink.LinkSetDown(link)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Whatever links fail and heal in whatever order, what Set leaves is what
// Apply, which looks at the kernel, finds to be as planned.
func TestRoutes_setEqualsApply(t *testing.T) {
	kerneltest.NeedRoot(t)
	const seed = 7
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	for _, n := range []struct{ spec, node string }{{"fat-tree:k=4", "e0.0"}, {"fat-tree:k=4", "a2.2"}, {"fat-tree:k=4", "3.0"}, {weightedSpec, "e0.1"}} {
		top, node := kerneltest.Topology(t, n.spec), n.node
		whole := mustPlan(t, top, node)
		ns := portedNamespace(t, "set-"+whole.Node, whole)
		applyNamed(t, ns, whole)
		r := openRoutes(t, ns, whole)
		if n := setRoutes(t, r, whole); n != 0 {
			t.Errorf("%s: %d changes where there are none", node, n)
		}
		for range 30 {
			var down []topology.LinkID
			for range rng.IntN(8) {
				down = append(down, topology.LinkID(rng.IntN(top.NumLinks())))
			}
			p := mustPlan(t, top.Without(down...), node)
			setRoutes(t, r, p)
			if again := applyNamed(t, ns, p); again.Changed != 0 {
				t.Fatalf("%s without %v: Apply changed %d settings", node, down, again.Changed)
			}
		}
	}
}

// What the kernel deletes when a port is set down comes back by Resync.
func TestRoutes_resyncRestores(t *testing.T) {
	kerneltest.NeedRoot(t)
	p := mustPlan(t, kerneltest.Topology(t, "fat-tree:k=4"), "a2.2")
	ns := portedNamespace(t, "resync", p)
	applyNamed(t, ns, p)
	r := openRoutes(t, ns, p)
	portFlag(t, ns, "p0", false)
	if n := setRoutes(t, r, p); n != 0 {
		t.Errorf("Set looked at the kernel: %d changes", n)
	}
	portFlag(t, ns, "p0", true)
	if n, err := r.Resync(); n != 1 || err != nil {
		t.Errorf("Resync: %d changes, %v; want the one route of the port", n, err)
	}
	if again := applyNamed(t, ns, p); again.Changed != 0 {
		t.Errorf("Apply changed %d settings", again.Changed)
	}
	if n, err := r.Resync(); n != 0 || err != nil {
		t.Errorf("Resync again: %d changes, %v", n, err)
	}
}

// An agent may plan a route over a port that has just gone down.
func TestRoutes_overPortsThatAreDown(t *testing.T) {
	kerneltest.NeedRoot(t)
	top := kerneltest.Topology(t, "fat-tree:k=4")
	p := mustPlan(t, top, "a2.2") // p2 and p3 lead up
	ns := portedNamespace(t, "down", p)
	applyNamed(t, ns, p)
	node, err := top.Lookup("a2.2")
	if err != nil {
		t.Fatal(err)
	}
	r := openRoutes(t, ns, mustPlan(t, top.WithoutNode(node.ID), "a2.2"))
	portFlag(t, ns, "p0", false)
	portFlag(t, ns, "p2", false)
	setRoutes(t, r, p)
	for prefix, want := range map[string]int{"default": 1, "10.2.0.0/24": 0, "10.2.1.0/24": 1, "10.4.1.1/32": 0, "10.4.1.2/32": 1} {
		got := hopsInKernel(t, ns, prefix)
		if got != want {
			t.Errorf("%s has %d hops while two ports are down, want %d", prefix, got, want)
		}
	}
	portFlag(t, ns, "p0", true)
	portFlag(t, ns, "p2", true)
	setRoutes(t, r, p)
	if again := applyNamed(t, ns, p); again.Changed != 0 {
		t.Errorf("Apply changed %d settings", again.Changed)
	}
}

// hopsInKernel returns how many next hops our route to a prefix has.
func hopsInKernel(t *testing.T, ns, prefix string) (hops int) {
	t.Helper()
	err := kernel.InNamespace(ns, func() error {
		h, err := netlink.NewHandle(kernel.Families...)
		if err != nil {
			return err
		}
		defer h.Close()
		routes, err := plannedRoutes(h)
		for id, r := range routes {
			if prefixName(id.prefix) == prefix && id.metric != lastMetric {
				hops = max(1, len(r.MultiPath))
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return hops
}

// Sets have the routes' weights, and a route whose weights alone differ is put right.
func TestRoutes_weightsInTheKernel(t *testing.T) {
	kerneltest.NeedRoot(t)
	p := mustPlan(t, kerneltest.Topology(t, weightedSpec), "e0.1")
	ns := portedNamespace(t, "weights", p)
	applyNamed(t, ns, p)
	r := openRoutes(t, ns, p)
	to := netip.MustParsePrefix("10.0.0.0/24")
	shares := func() (list []int) {
		err := kernel.InNamespace(ns, func() error {
			h, err := netlink.NewHandle(kernel.Families...)
			if err != nil {
				return err
			}
			defer h.Close()
			routes, err := hopsByPrefix(h, nil)
			if err != nil {
				return err
			}
			set, err := balance.NewSet(routes[to])
			of := make(map[uint32]int)
			for _, step := range set.Steps[:set.N] {
				of[step.Port]++
			}
			list = slices.Sorted(maps.Values(of))
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	if steps := shares(); !slices.Equal(steps, []int{1, 2}) {
		t.Errorf("steps %v, want 1 and 2", steps)
	}
	kerneltest.Shell(t, ns, "ip route replace 10.0.0.0/24 proto 87 nexthop via "+p.Ports[1].PeerAddr.String()+" dev p1 onlink nexthop via "+p.Ports[2].PeerAddr.String()+" dev p2 onlink")
	if steps := shares(); !slices.Equal(steps, []int{1, 1}) {
		t.Errorf("steps %v of equal hops", steps)
	}
	if n, err := r.Resync(); n != 1 || err != nil {
		t.Errorf("Resync: %d changes, %v; want that of the weights", n, err)
	}
	if steps := shares(); !slices.Equal(steps, []int{1, 2}) {
		t.Errorf("steps %v again, want 1 and 2", steps)
	}
	if again := applyNamed(t, ns, p); again.Changed != 0 {
		t.Errorf("Apply changed %d settings", again.Changed)
	}
}

// One link fails and heals: the planning and the programming of it.
func BenchmarkRoutes_oneLink(b *testing.B) {
	top := kerneltest.Topology(b, "fat-tree:k=4")
	for _, c := range []struct{ name, node, link string }{
		{"own", "e0.0", "a0.2"}, {"remote", "e0.0", "a3.2"},
	} {
		b.Run(c.name, func(b *testing.B) {
			whole := mustPlan(b, top, c.node)
			ns := portedNamespace(b, "bench", whole)
			applyNamed(b, ns, whole)
			r := openRoutes(b, ns, whole)
			peer, _ := top.Lookup(c.link)
			down := top.Without(top.Ports(peer.ID)[0].Link)
			node, _ := top.Lookup(c.node)
			for i := 0; b.Loop(); i++ {
				now := down
				if i%2 == 1 {
					now = top
				}
				p, err := Plan(now, node.ID, Options{})
				if err != nil {
					b.Fatal(err)
				}
				setRoutes(b, r, p)
			}
		})
	}
}

// A port whose device is gone takes no other port's routes with it, and its own come
// back with a device of that name. What was nobody's plan is removed.
func TestRoutes_portWithoutDevice(t *testing.T) {
	kerneltest.NeedRoot(t)
	p := mustPlan(t, kerneltest.Topology(t, "fat-tree:k=4"), "a2.2")
	ns := portedNamespace(t, "nodev", p)
	applyNamed(t, ns, p)
	r := openRoutes(t, ns, p)
	kerneltest.Shell(t, ns, "ip link del p2; ip route flush proto 87; ip route add 10.9.0.0/16 via 10.2.0.1 dev p0 onlink proto 87")
	if _, err := r.Resync(); err != nil {
		t.Fatalf("without p2: %v", err)
	}
	for prefix, want := range map[string]int{"default": 1, "10.2.0.0/24": 1, "10.4.1.1/32": 0, "10.4.1.2/32": 1, "10.9.0.0/16": 0} {
		if got := hopsInKernel(t, ns, prefix); got != want {
			t.Errorf("%s has %d hops without p2, want %d", prefix, got, want)
		}
	}
	if n, err := r.Resync(); n != 0 || err != nil {
		t.Errorf("Resync again: %d changes, %v", n, err)
	}
	kerneltest.Shell(t, ns, "ip link add p2 type veth peer name far9; ip link set far9 up; ip link set p2 up")
	if n, err := r.Resync(); n != 2 || err != nil {
		t.Errorf("Resync with p2: %d changes, %v; want the default route and the core's", n, err)
	}
	if again := applyNamed(t, ns, p); again.Changed > len(p.Ports) { // the device's own settings
		t.Errorf("Apply changed %d settings", again.Changed)
	}
}
