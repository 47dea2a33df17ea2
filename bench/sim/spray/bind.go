package spray

import (
	"weft/drb"
	"weft/internal/paths"
)

// bind gives a pair the selectors of its paths.
func (h *Hosts) bind(p *pair) {
	seed := mix(h.config.Seed, uint64(p.src)<<32|uint64(p.dst))
	p.further = nil
	p.divided = len(p.paths.Components) > 1
	for i := range p.paths.Components {
		order := p.paths.Components[i].Order
		data, ack := paths.Seeds(seed, uint64(p.bound), i)
		s := selectors{data: drb.NewSelector(h.policy.Rule, order, data), ack: drb.NewSelector(h.policy.Rule, order, ack)}
		if i == 0 {
			p.selectors = s
		} else {
			p.further = append(p.further, s)
		}
	}
	p.bound++
}

// mix is a number that two others make, splitmix64's way (Steele et al., OOPSLA
// 2014).
func mix(a, b uint64) uint64 {
	z := a + (b+1)*0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
