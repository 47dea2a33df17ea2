package spray

import "weft/drb"

// bind gives a pair the selectors of its paths. Those of different pairs and kinds
// must not start in step, nor those of a pair again and again at one place.
func (h *Hosts) bind(p *pair) {
	seed := mix(h.config.Seed, uint64(p.src)<<32|uint64(p.dst))
	seed += uint64(p.bound) * 0x9e3779b97f4a7c14 // even: the lowest bit tells nothing apart
	p.bound++
	p.further = nil
	for i := range p.paths.components {
		order := p.paths.components[i].order
		s := selectors{data: drb.NewSelector(h.policy.Rule, order, seed), ack: drb.NewSelector(h.policy.Rule, order, seed^1<<63)}
		if i == 0 {
			p.selectors = s
		} else {
			p.further = append(p.further, s)
		}
		seed += 0xd1342543de82ef96
	}
}

// mix is a number that two others make, splitmix64's way (Steele et al., OOPSLA
// 2014).
func mix(a, b uint64) uint64 {
	z := a + (b+1)*0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
