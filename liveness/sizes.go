package liveness

// commonSizes are the MTUs that links have: Ethernet's with and without jumbo frames
// and tunnels, FDDI's, IPv6's least, and what every IPv4 host must take.
var commonSizes = [...]int{9216, 9000, 4352, 2048, 1500, 1492, 1480, 1476, 1460, 1450, 1440, 1420, 1400, 1380, 1360, 1320, 1280, 1200, 1006, 800}

// The shortest full-size packets without their outer header: every host must take as much
// (RFC 791, RFC 8200 §5). TCP over IPv6 sends no shorter ones when it has more to send.
const (
	leastInner  = 576
	leastInner6 = 1280
)

// leastFull is the shortest full-size packet, outer header included, in bytes.
func (c *Config) leastFull() int {
	if c.six() {
		return leastInner6 + c.overhead()
	}
	return leastInner + c.overhead()
}

// sizes are the packets that are tried, outer header included, the longest first.
func (c *Config) sizes() []int {
	if c.MTU == 0 {
		return nil
	}
	list, least := []int{c.MTU}, c.leastFull()
	for _, n := range commonSizes {
		if n < c.MTU && n > least {
			list = append(list, n)
		}
	}
	if c.MTU > least {
		list = append(list, least)
	}
	return list
}
