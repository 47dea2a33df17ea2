package stack

import (
	"math"
	"sync/atomic"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	gstack "gvisor.dev/gvisor/pkg/tcpip/stack"

	"weft/internal/dataplane"
)

// endpoint is the network interface that netstack sees: egress on one side,
// ingress on the other.
type endpoint struct {
	out        *dataplane.Egress
	mtu        uint32
	dispatcher atomic.Pointer[gstack.NetworkDispatcher]
	verified   atomic.Bool // the packet that is delivered needs no check of its checksums
}

var (
	_ gstack.LinkEndpoint = (*endpoint)(nil)
	_ gstack.GSOEndpoint  = (*endpoint)(nil)
)

func newEndpoint(out *dataplane.Egress) *endpoint {
	return &endpoint{out: out, mtu: uint32(out.MTU())}
}

// SupportedGSO says whether netstack may hand down super-segments. Netstack asks for
// every connection.
func (e *endpoint) SupportedGSO() gstack.SupportedGSO {
	if e.out.TakesSupers() {
		return gstack.HostGSOSupported
	}
	return gstack.GSONotSupported
}

// GSOMaxSize bounds super-segments so that they have whole segments only, and no more
// payload than a flowcell of any policy in use: a super-segment is never divided.
// Netstack asks for every connection.
func (e *endpoint) GSOMaxSize() uint32 {
	const margin = header.TCPTotalHeaderMaximumSize + 1 // what netstack leaves free for headers
	mss := int(e.mtu) - header.IPv4MinimumSize - header.TCPMinimumSize
	payload := math.MaxUint16 - margin
	if cell := e.out.CellBytes(); cell > 0 {
		payload = min(payload, cell)
	}
	return uint32(max(payload/mss, 1)*mss + margin)
}

// MTU leaves room for the outer header.
func (e *endpoint) MTU() uint32 { return e.mtu }

// WritePackets copies what it is given: the payload belongs to TCP, which may
// send it again. The error tells TCP that the device's queue is full.
func (e *endpoint) WritePackets(list gstack.PacketBufferList) (int, tcpip.Error) {
	packets := list.AsSlice()
	if !dataplane.Send(e.out, packets, outOfNetstack) {
		return 0, &tcpip.ErrNoBufferSpace{}
	}
	return len(packets), nil
}

// outOfNetstack makes o a packet of netstack's, and uses the space of o.Parts. It
// copies nothing.
func outOfNetstack(p *gstack.PacketBuffer, o *dataplane.Outgoing) {
	o.Begin(p.Size())
	views, skip := p.AsViewList()
	for v := views.Front(); v != nil; v = v.Next() {
		s := v.AsSlice()
		if skip >= len(s) {
			skip -= len(s)
			continue
		}
		o.Parts = append(o.Parts, s[skip:])
		skip = 0
	}
	if p.Owner != nil {
		o.Policy = uint8(p.Owner.KUID())
	}
	g := &p.GSOOptions
	if g.Type == gstack.GSONone {
		return
	}
	o.Partial, o.CsumStart, o.CsumAt = g.NeedsCsum, g.L3HdrLen, g.CsumOffset
	if p.Data().Size() > int(g.MSS) {
		o.MSS = int(g.MSS)
	}
}

// deliver hands one packet up; without a dispatcher it is dropped. Calls must not
// overlap. If verified is true, netstack does not look at its checksums: netstack
// asks the interface about that for every packet.
func (e *endpoint) deliver(p *gstack.PacketBuffer, verified bool) {
	e.verified.Store(verified)
	if d := e.dispatcher.Load(); d != nil {
		(*d).DeliverNetworkPacket(networkOf(p), p)
	}
	p.DecRef()
}

// networkOf is the network protocol of a packet that has not been parsed.
func networkOf(p *gstack.PacketBuffer) tcpip.NetworkProtocolNumber {
	if b, ok := p.Data().PullUp(1); ok && b[0]>>4 == 6 {
		return header.IPv6ProtocolNumber
	}
	return header.IPv4ProtocolNumber
}

func (e *endpoint) Attach(d gstack.NetworkDispatcher) {
	if d == nil {
		e.dispatcher.Store(nil)
		return
	}
	e.dispatcher.Store(&d)
}

func (e *endpoint) IsAttached() bool        { return e.dispatcher.Load() != nil }
func (e *endpoint) MaxHeaderLength() uint16 { return Overhead }
func (e *endpoint) Capabilities() gstack.LinkEndpointCapabilities {
	if e.verified.Load() {
		return gstack.CapabilityRXChecksumOffload
	}
	return gstack.CapabilityNone
}
func (e *endpoint) ARPHardwareType() header.ARPHardwareType { return header.ARPHardwareNone }

// The rest of the interface has no meaning here: there is no link layer, and
// the Host ends the goroutines.

func (e *endpoint) SetMTU(uint32)                         {}
func (e *endpoint) LinkAddress() tcpip.LinkAddress        { return "" }
func (e *endpoint) SetLinkAddress(tcpip.LinkAddress)      {}
func (e *endpoint) Wait()                                 {}
func (e *endpoint) AddHeader(*gstack.PacketBuffer)        {}
func (e *endpoint) ParseHeader(*gstack.PacketBuffer) bool { return true }
func (e *endpoint) Close()                                {}
func (e *endpoint) SetOnCloseAction(func())               {}
