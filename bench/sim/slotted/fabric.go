package slotted

import "math/rand/v2"

// fabric is a fat-tree's ports. Hosts are numbered pod by pod and rack by rack.
// Packets all go by way of a core, those within a pod as well, as the appendix has
// it. The ports of a hop are numbered switch by switch, cores by their path.
type fabric struct {
	hops    int
	half    int32 // of the ports of a switch
	load    uint64
	rng     *rand.Rand
	hosts   []host
	queues  [hops][]queue
	packets []packet // 0 is none
	free    int32    // list of unused packets
	sent    uint64
}

// queue is a port's, first come, first served: a list in packets.
type queue struct{ head, tail, length int32 }

type packet struct{ next, path, to int32 }

func newFabric(c *Config) *fabric {
	rng := rand.New(rand.NewPCG(c.Seed, 0x736c6f74))
	f := &fabric{
		hops: c.Hops, half: int32(c.Ports / 2), rng: rng,
		// A number of 53 bits is below this with probability Load.
		load:    uint64(c.Load * (1 << 53)),
		hosts:   newHosts(c, rng),
		packets: make([]packet, 1),
	}
	for hop := range c.Hops {
		f.queues[hop] = make([]queue, len(f.hosts))
	}
	return f
}

// step is one slot. Every port sends before anything arrives, so the last hop is
// first; a packet moves by one hop in a slot.
func (f *fabric) step() {
	for hop := f.hops - 1; hop >= 0; hop-- {
		for i := range f.queues[hop] {
			q := &f.queues[hop][i]
			if q.length == 0 {
				continue
			}
			f.sent++
			p := f.pop(q)
			if hop+1 == f.hops {
				f.packets[p].next, f.free = f.free, p
				continue
			}
			f.push(f.next(hop+1, int32(i), p), p)
		}
	}
	for i := range f.hosts {
		if f.rng.Uint64()>>11 >= f.load {
			continue
		}
		h := &f.hosts[i]
		path, _ := h.selector.Next(0)
		p := f.alloc()
		f.packets[p] = packet{path: int32(path), to: h.to}
		rack := int32(i) / f.half
		f.push(&f.queues[0][rack*f.half+int32(path)/f.half], p)
	}
}

// next returns the queue of a hop that a packet enters from a port of the hop
// before.
func (f *fabric) next(hop int, from, p int32) *queue {
	half, path, to := f.half, f.packets[p].path, f.packets[p].to
	up, core := path/half, path%half
	pod, rack := to/(half*half), to/half
	switch hop {
	case 1:
		pod = from / (half * half)
		return &f.queues[1][(pod*half+up)*half+core]
	case 2:
		return &f.queues[2][path*2*half+pod]
	case 3:
		return &f.queues[3][(pod*half+up)*half+rack%half]
	}
	return &f.queues[4][to]
}

func (f *fabric) push(q *queue, p int32) {
	if f.packets[p].next = 0; q.length == 0 {
		q.head = p
	} else {
		f.packets[q.tail].next = p
	}
	q.tail = p
	q.length++
}

func (f *fabric) pop(q *queue) int32 {
	p := q.head
	q.head = f.packets[p].next
	q.length--
	return p
}

func (f *fabric) alloc() int32 {
	if p := f.free; p != 0 {
		f.free = f.packets[p].next
		return p
	}
	f.packets = append(f.packets, packet{})
	return int32(len(f.packets) - 1)
}
