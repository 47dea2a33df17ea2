package topoupdate

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"time"
	"weft/topology"
)

func (c *conversation) port(n int, what string, args []string) error {
	p := c.peers[n]
	switch what {
	case "carrier":
		c.agent.Carrier(n, args[0] == "up", c.now)
	case "talks":
		p.talking, p.deaf, p.due = true, false, c.now
	case "quiet":
		p.talking, p.due = false, never
	case "deaf":
		p.deaf, p.heard = true, 0
		p.session++ // it has lost us
	case "replay":
		c.deliver(n, p.last)
	case "hello", "update":
		return c.compose(n, p, what, args)
	default:
		return fmt.Errorf("unknown")
	}
	return nil
}

func (c *conversation) compose(n int, p *speaker, what string, args []string) error {
	m := &message{header: header{kind: typeHello, session: p.session, heard: p.heard}}
	if what == "update" {
		m.kind = typeUpdate
	}
	counter, key, forged := int64(-1), -1, false
	for _, arg := range args {
		name, value, _ := strings.Cut(arg, "=")
		v, err := strconv.ParseUint(value, 10, 64)
		switch name {
		case "session":
			m.session = v
			p.session = v
		case "heard":
			m.header.heard = v
		case "counter":
			counter = int64(v)
		case "key":
			key = int(v)
		case "down":
			m.hello.down, err = true, nil
		case "leaving":
			m.hello.leaving, err = true, nil
		case "forged":
			forged, err = true, nil
		default:
			err = m.entry(c.top, arg)
		}
		if err != nil {
			return err
		}
	}
	if counter >= 0 {
		p.counter = uint64(counter)
	}
	return c.send(n, p, m, key, forged)
}

func (m *message) entry(top *topology.Topology, arg string) error {
	f := strings.Split(arg, "/")
	if len(f) != 5 {
		return fmt.Errorf("%q is no entry", arg)
	}
	node, err := top.Lookup(f[0])
	if err != nil {
		return err
	}
	e := testEntry{originator: int(node.ID), down: []uint64{0}}
	inc, err1 := strconv.ParseUint(f[1], 10, 64)
	seq, err2 := strconv.ParseUint(f[2], 10, 32)
	age, err3 := time.ParseDuration(f[3])
	if err := firstError(err1, err2, err3); err != nil {
		return err
	}
	e.version, e.age = version{inc, uint32(seq)}, age
	if f[4] != "" {
		for _, s := range strings.Split(f[4], ",") {
			n, err := strconv.Atoi(s)
			if err != nil {
				return err
			}
			e.down[0] |= 1 << n
		}
	}
	m.entries = append(m.entries, e)
	return nil
}

func firstError(errs ...error) error {
	if i := slices.IndexFunc(errs, func(err error) bool { return err != nil }); i >= 0 {
		return errs[i]
	}
	return nil
}

// send sends a neighbour's message. With key 0 or less it is signed as the
// machine's keys have it.
func (c *conversation) send(n int, p *speaker, m *message, key int, forged bool) error {
	m.sender, m.senderPort, m.counter = p.port.Peer, p.port.PeerPort, p.counter
	p.counter++
	if m.kind == typeHello {
		m.hello.interval, m.hello.multiplier = c.config.Hello, 3
	}
	ring := c.ring
	if key > 0 {
		ring = mustRing(c.t, Keys{List: slices.DeleteFunc(slices.Clone(c.keys.List), func(k Key) bool { return int(k.ID) != key })})
	}
	b := m.encode(c.top.Fingerprint(), ring, c.now)
	if forged {
		b[len(b)-1] ^= 1
	}
	p.last = b
	c.deliver(n, b)
	return nil
}

func (c *conversation) deliver(n int, b []byte) {
	if c.agent != nil {
		c.agent.Receive(n, b, c.now)
	} else {
		c.listener.Receive(b, netip.Addr{}, c.now)
	}
	c.show()
}

// hear is where the machine's messages go.
func (c *conversation) hear(port int, packet []byte) {
	h, err := parseHeader(packet, c.top.Fingerprint())
	if err != nil || h.sender != c.self || h.senderPort != port {
		c.t.Fatalf("at %v it sends what nobody takes: %v: %x", c.now, err, packet)
	}
	p := c.peers[port]
	key := ""
	if packet[atKey] != 0 {
		key = fmt.Sprintf(" key %d", packet[atKey])
		packet = packet[:len(packet)-macSize]
	}
	if h.kind == typeHello {
		m, err := parseHello(packet[headerSize:], h.count)
		if err != nil {
			c.t.Fatal(err)
		}
		s := fmt.Sprintf("port %d hello", port)
		if h.heard != 0 {
			s += fmt.Sprintf(" heard=%d", h.heard)
		}
		if m.down {
			s += " down"
		}
		if m.leaving {
			s += " leaving"
		}
		if s += key; c.said[port] != s {
			c.said[port] = s
			c.say("%s", s)
		}
		if !p.deaf && p.heard != h.session {
			p.heard = h.session
			if p.talking {
				p.due = c.now // answers at once
			}
		}
		return
	}
	s := fmt.Sprintf("port %d update%s", port, key)
	for rest := packet[headerSize:]; len(rest) > 0; {
		var e claim
		if e, rest, err = nextEntry(rest); err != nil {
			c.t.Fatal(err)
		}
		s += fmt.Sprintf(" %s/%d/%d/%v/", c.top.Node(e.originator).Name, e.incarnation, e.sequence, e.age)
		var ports []string
		for i := range 8 * len(e.bitmap) {
			if word(e.bitmap, i/64)&(1<<(i%64)) != 0 {
				ports = append(ports, strconv.Itoa(i))
			}
		}
		s += strings.Join(ports, ",")
	}
	c.say("%s", s)
}
