package wire

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	"weft/topoupdate"
)

// MaxServers bounds the schedulers of a fabric.
const MaxServers = 16

// ClientConfig configures a Client.
type ClientConfig struct {
	Fabric  uint64           // the fingerprint of the topology: hedera.Fingerprint
	Address netip.Addr       // the node's own in the fabric; messages come from it
	Servers []netip.AddrPort // all schedulers, by addresses of Address' family
	Keys    topoupdate.Keys  // a From counts from Dial
	// Place is called with the placements of each message, by one goroutine. The list is
	// valid until Place returns. Place must not call Close.
	Place func([]Placement)
}

func (c *ClientConfig) check() error {
	switch {
	case !c.Address.IsValid():
		return errors.New("hedera: ClientConfig.Address is missing: give the node's own in the fabric")
	case len(c.Servers) == 0 || len(c.Servers) > MaxServers:
		return fmt.Errorf("hedera: ClientConfig.Servers are %d: give 1 to %d", len(c.Servers), MaxServers)
	case c.Place == nil:
		return errors.New("hedera: ClientConfig.Place is missing")
	}
	for i, s := range c.Servers {
		if !s.IsValid() || s.Port() == 0 {
			return fmt.Errorf("hedera: ClientConfig.Servers[%d] is %v: give an address and a port", i, s)
		}
		if s.Addr().Unmap().Is4() != c.Address.Unmap().Is4() {
			return fmt.Errorf("hedera: ClientConfig.Servers[%d] is %v, and messages come from %v: give an address of that family", i, s, c.Address)
		}
	}
	return nil
}

// Client is a node's connection to the schedulers. Its methods are safe for concurrent use.
type Client struct {
	conn  *net.UDPConn
	place func([]Placement)
	start time.Time
	ended chan struct{}
	wait  sync.WaitGroup

	mu   sync.Mutex
	node *Node
	stat ClientStatus
}

// ClientStatus is what a Client has done.
type ClientStatus struct {
	Leader     string            `json:"leader"` // the scheduler that reports go to; empty: none is known
	Epoch      uint64            `json:"epoch"`  // since which it leads
	Reports    uint64            `json:"reports"`
	Flows      uint64            `json:"flows"`    // reported
	Unheard    uint64            `json:"unheard"`  // reports while no leader was known
	SendErrors uint64            `json:"not_sent"` // messages
	Placements uint64            `json:"placements"`
	Rejected   map[string]uint64 `json:"rejected,omitempty"`
}

// Random is a number that nobody can foresee.
func Random() uint64 {
	var b [8]byte
	rand.Read(b[:]) // it never fails
	return binary.BigEndian.Uint64(b[:])
}

// Dial opens a socket in the network namespace of the calling thread, bound to Address, as
// servers believe a node only what comes from its address, and begins to say hello. It does not wait for an answer.
func Dial(c ClientConfig) (*Client, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	node, err := NewNode(NodeConfig{Fabric: c.Fabric, Address: c.Address, Servers: c.Servers, Keys: c.Keys, Random: Random}, 0)
	if err != nil {
		return nil, fmt.Errorf("hedera: ClientConfig.%w", err)
	}
	conn, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(c.Address.Unmap(), 0)))
	if err != nil {
		return nil, fmt.Errorf("hedera: the node's address, which schedulers know it by: %w; give it to an interface", err)
	}
	cl := &Client{conn: conn, place: c.Place, start: time.Now(), ended: make(chan struct{}), node: node}
	cl.wait.Add(2)
	go cl.receive()
	go cl.poll()
	return cl, nil
}

// Send reports flows to the leader. It returns false, and does nothing, while no leader is
// known. It does not wait.
func (c *Client) Send(r Report) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.node.Report(r, time.Since(c.start), c.write) {
		c.stat.Unheard++
		return false
	}
	c.stat.Reports++
	c.stat.Flows += uint64(min(len(r.Flows), MaxFlows))
	return true
}

// write sends a message. What the kernel does not take is lost, as in the network. mu is
// held.
func (c *Client) write(to netip.AddrPort, b []byte) {
	if _, err := c.conn.WriteToUDPAddrPort(b, to); err != nil {
		c.stat.SendErrors++
	}
}

// SetKeys exchanges the keys. A From counts from Dial.
func (c *Client) SetKeys(k topoupdate.Keys) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.node.SetKeys(k)
}

// Status returns the counters.
func (c *Client) Status() ClientStatus {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.stat
	leader, epoch := c.node.Leader(time.Since(c.start))
	if leader.IsValid() {
		s.Leader = leader.String()
	}
	rejects := c.node.Rejects()
	s.Epoch, s.Rejected = epoch, rejects.ByName()
	return s
}

// Close ends the client. Placements stay until they expire.
func (c *Client) Close() error {
	close(c.ended)
	err := c.conn.Close()
	c.wait.Wait()
	return err
}

func (c *Client) receive() {
	defer c.wait.Done()
	buf := make([]byte, MaxMessage+1)
	for {
		n, from, err := c.conn.ReadFromUDPAddrPort(buf)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			if c.pause() {
				return
			}
			continue
		}
		c.mu.Lock()
		list, err := c.node.Receive(buf[:n], from, time.Since(c.start))
		c.stat.Placements += uint64(len(list))
		c.mu.Unlock()
		if len(list) > 0 {
			c.place(list) // only this goroutine changes the list
		}
	}
}

// pause waits a little after an error, and reports whether the client has ended.
func (c *Client) pause() bool {
	select {
	case <-c.ended:
		return true
	case <-time.After(10 * time.Millisecond):
		return false
	}
}

func (c *Client) poll() {
	defer c.wait.Done()
	for {
		c.mu.Lock()
		now := time.Since(c.start)
		next := c.node.Poll(now, c.write)
		c.mu.Unlock()
		timer := time.NewTimer(min(max(next-now, time.Millisecond), renewEvery))
		select {
		case <-c.ended:
			timer.Stop()
			return
		case <-timer.C:
		}
	}
}
