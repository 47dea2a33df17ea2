package slotted

import (
	"math/rand/v2"
	"slices"
)

// port names one by its hop, its switch's place and its number at the switch.
type port struct{ hop, pod, switchOrGroup, number int }

// whole is a packet that knows all of its path.
type whole struct{ path [hops]port }

// oracle is Run with a map of slices. Ports are visited in the order of their
// names, which is Run's.
func oracle(c Config) *Result {
	rng := rand.New(rand.NewPCG(c.Seed, 0x736c6f74))
	half := c.Ports / 2
	hosts := newHosts(&c, rng)
	queues := map[port][]whole{}
	var names [hops][]port
	for hop := range c.Hops {
		for pod := range c.Ports {
			for s := range half {
				for n := range half {
					name := port{hop, pod, s, n}
					if hop == 2 { // by core: its group, its place there and the pod
						name = port{hop, s, n, pod}
					}
					names[hop] = append(names[hop], name)
				}
			}
		}
		slices.SortFunc(names[hop], func(a, b port) int {
			return slices.Compare([]int{a.pod, a.switchOrGroup, a.number}, []int{b.pod, b.switchOrGroup, b.number})
		})
	}
	r := &Result{}
	for slot := range c.Warmup + c.Slots {
		for hop := c.Hops - 1; hop >= 0; hop-- {
			for _, name := range names[hop] {
				q := queues[name]
				if len(q) == 0 {
					continue
				}
				r.PacketHops++
				p := q[0]
				queues[name] = q[1:]
				if hop+1 < c.Hops {
					to := p.path[hop+1]
					queues[to] = append(queues[to], p)
				}
			}
		}
		for i := range hosts {
			if float64(rng.Uint64()>>11)/(1<<53) >= c.Load {
				continue
			}
			path, _ := hosts[i].selector.Next(0)
			up, core, to := path/half, path%half, int(hosts[i].to)
			srcPod, srcRack := i/(half*half), i/half%half
			dstPod, dstRack := to/(half*half), to/half%half
			p := whole{[hops]port{
				{0, srcPod, srcRack, up},
				{1, srcPod, up, core},
				{2, up, core, dstPod},
				{3, dstPod, up, dstRack},
				{4, dstPod, dstRack, to % half},
			}}
			queues[p.path[0]] = append(queues[p.path[0]], p)
		}
		for hop := range c.Hops {
			for _, name := range names[hop] {
				if n := len(queues[name]); slot >= c.Warmup {
					for len(r.Lengths[hop]) <= n {
						r.Lengths[hop] = append(r.Lengths[hop], 0)
					}
					r.Lengths[hop][n]++
				}
			}
		}
	}
	return r
}
