package throughput

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"

	"gvisor.dev/gvisor/pkg/buffer"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/adapters/gonet"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	gstack "gvisor.dev/gvisor/pkg/tcpip/stack"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"

	"weft/link"
	"weft/stack"
)

// bareNetstack is netstack over the same device as weft's, with nothing between
// them: what weft adds is the difference to this. ECMP gives it one path.
var bareNetstack = way{supports: needTUN, open: func(s site) (*host, error) {
	device, err := openFast(s)
	if err != nil {
		return nil, err
	}
	address := s.topology.EmbeddedAddr(s.self)
	n, err := newBareStack(&bareEndpoint{device: device}, address)
	if err != nil {
		return nil, errors.Join(err, device.Close())
	}
	return &host{
		Endpoint:    bareSockets{n},
		address:     address,
		retransmits: func() (uint64, error) { return n.Stats().TCP.Retransmits.Value(), nil },
		close: func() error {
			n.Close()
			err := device.Close()
			n.Wait()
			return err
		},
	}, nil
}}

const nic = 1

// newBareStack has the buffers and the recovery that a weft Host has.
func newBareStack(ep *bareEndpoint, address netip.Addr) (*gstack.Stack, error) {
	n := gstack.New(gstack.Options{
		NetworkProtocols:   []gstack.NetworkProtocolFactory{ipv4.NewProtocol},
		TransportProtocols: []gstack.TransportProtocolFactory{tcp.NewProtocolCUBIC},
	})
	send := tcpip.TCPSendBufferSizeRangeOption{Min: 4 << 10, Default: 2560 << 10, Max: 8 << 20}
	receive := tcpip.TCPReceiveBufferSizeRangeOption{Min: 4 << 10, Default: 2560 << 10, Max: 8 << 20}
	sack, moderate := tcpip.TCPSACKEnabled(true), tcpip.TCPModerateReceiveBufferOption(true)
	var recovery tcpip.TCPRecovery
	for _, o := range []tcpip.SettableTransportProtocolOption{&send, &receive, &sack, &moderate, &recovery} {
		if err := n.SetTransportProtocolOption(tcp.ProtocolNumber, o); err != nil {
			return nil, fmt.Errorf("TCP option %T: %s", o, err)
		}
	}
	if err := n.CreateNIC(nic, ep); err != nil {
		return nil, fmt.Errorf("create interface: %s", err)
	}
	at := tcpip.ProtocolAddress{Protocol: ipv4.ProtocolNumber, AddressWithPrefix: tcpip.AddrFrom4(address.As4()).WithPrefix()}
	if err := n.AddProtocolAddress(nic, at, gstack.AddressProperties{}); err != nil {
		return nil, fmt.Errorf("add address %v: %s", address, err)
	}
	n.SetRouteTable([]tcpip.Route{{Destination: header.IPv4EmptySubnet, NIC: nic}})
	return n, nil
}

type bareSockets struct{ stack *gstack.Stack }

func (b bareSockets) DialContext(ctx context.Context, _, address string) (net.Conn, error) {
	a, err := fullAddress(address)
	if err != nil {
		return nil, err
	}
	return gonet.DialContextTCP(ctx, b.stack, a, ipv4.ProtocolNumber)
}

func (b bareSockets) Listen(_, address string) (net.Listener, error) {
	a, err := fullAddress(address)
	if err != nil {
		return nil, err
	}
	return gonet.ListenTCP(b.stack, a, ipv4.ProtocolNumber)
}

func fullAddress(address string) (tcpip.FullAddress, error) {
	a, err := netip.ParseAddrPort(address)
	if err != nil {
		return tcpip.FullAddress{}, err
	}
	return tcpip.FullAddress{NIC: nic, Addr: tcpip.AddrFrom4(a.Addr().As4()), Port: a.Port()}, nil
}

// bareEndpoint joins netstack and a device with super-segments.
type bareEndpoint struct {
	device     *fast
	dispatcher atomic.Pointer[gstack.NetworkDispatcher]

	mu    sync.Mutex
	head  [link.VnetHeaderLen + 128]byte // the longest headers of IP and TCP have 120 bytes
	parts [][]byte
}

// Attach starts to read; the end of the device ends it.
func (e *bareEndpoint) Attach(d gstack.NetworkDispatcher) {
	if d == nil {
		e.dispatcher.Store(nil)
		return
	}
	if e.dispatcher.Swap(&d) == nil {
		go e.read()
	}
}

// Packets above this are not copied out of the buffer that they were read into.
const copied = 16 << 10

func (e *bareEndpoint) read() {
	const batch, size = 8, 1 << 16
	views, bufs, sizes := make([]*buffer.View, batch), make([][]byte, batch), make([]int, batch)
	for {
		for i, v := range views {
			if v == nil {
				views[i] = buffer.NewViewSize(size)
				bufs[i] = views[i].AsSlice()
			}
		}
		n, err := e.device.ReadSuper(bufs, sizes, link.SuperHeadroom)
		if err != nil {
			return
		}
		for i := range n {
			var payload buffer.Buffer
			if sizes[i] > copied {
				views[i].CapLength(link.SuperHeadroom + sizes[i])
				views[i].TrimFront(link.SuperHeadroom)
				payload, views[i] = buffer.MakeWithView(views[i]), nil
			} else {
				payload = buffer.MakeWithData(bufs[i][link.SuperHeadroom:][:sizes[i]])
			}
			e.deliver(payload)
		}
	}
}

func (e *bareEndpoint) deliver(payload buffer.Buffer) {
	p := gstack.NewPacketBuffer(gstack.PacketBufferOptions{Payload: payload})
	defer p.DecRef()
	if d := e.dispatcher.Load(); d != nil {
		(*d).DeliverNetworkPacket(header.IPv4ProtocolNumber, p)
	}
}

// WritePackets hands each packet, super-segment or not, to the kernel in one
// call, without a copy of the payload.
func (e *bareEndpoint) WritePackets(list gstack.PacketBufferList) (int, tcpip.Error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, p := range list.AsSlice() {
		e.gather(p)
		if err := e.device.WriteParts(e.parts); err != nil {
			return 0, &tcpip.ErrClosedForSend{}
		}
		clear(e.parts)
	}
	return list.Len(), nil
}

// gather makes e.parts of a packet: first a copy of the headers, in one piece.
func (e *bareEndpoint) gather(p *gstack.PacketBuffer) {
	vnetHeader(p).Put((*[link.VnetHeaderLen]byte)(e.head[:]))
	e.parts = append(e.parts[:0], nil)
	views, skip := p.AsViewList()
	for v := views.Front(); v != nil; v = v.Next() {
		s := v.AsSlice()
		cut := min(skip, len(s))
		skip -= cut
		if s = s[cut:]; len(s) == 0 {
			continue
		}
		if e.parts[0] == nil {
			n := copy(e.head[link.VnetHeaderLen:], s[:min(len(s), p.HeaderSize())])
			e.parts[0] = e.head[:link.VnetHeaderLen+n]
			s = s[n:]
		}
		if len(s) > 0 {
			e.parts = append(e.parts, s)
		}
	}
}

func vnetHeader(p *gstack.PacketBuffer) (h link.VnetHeader) {
	g := &p.GSOOptions
	if g.Type == gstack.GSONone {
		return h
	}
	if g.NeedsCsum {
		h.Flags, h.CsumStart, h.CsumOffset = link.VnetNeedsCsum, g.L3HdrLen, g.CsumOffset
	}
	if p.Data().Size() > int(g.MSS) {
		h.GSOType, h.GSOSize, h.HdrLen = link.VnetGSOTCPv4, g.MSS, uint16(p.HeaderSize())
	}
	return h
}

// The kernel has checked what it gives, or made it.
func (e *bareEndpoint) Capabilities() gstack.LinkEndpointCapabilities {
	return gstack.CapabilityRXChecksumOffload
}

func (e *bareEndpoint) SupportedGSO() gstack.SupportedGSO       { return gstack.HostGSOSupported }
func (e *bareEndpoint) GSOMaxSize() uint32                      { return link.MaxSuperLen }
func (e *bareEndpoint) MTU() uint32                             { return uint32(e.device.MTU() - stack.Overhead) }
func (e *bareEndpoint) IsAttached() bool                        { return e.dispatcher.Load() != nil }
func (e *bareEndpoint) MaxHeaderLength() uint16                 { return 0 }
func (e *bareEndpoint) ARPHardwareType() header.ARPHardwareType { return header.ARPHardwareNone }
func (e *bareEndpoint) SetMTU(uint32)                           {}
func (e *bareEndpoint) LinkAddress() tcpip.LinkAddress          { return "" }
func (e *bareEndpoint) SetLinkAddress(tcpip.LinkAddress)        {}
func (e *bareEndpoint) Wait()                                   {}
func (e *bareEndpoint) AddHeader(*gstack.PacketBuffer)          {}
func (e *bareEndpoint) ParseHeader(*gstack.PacketBuffer) bool   { return true }
func (e *bareEndpoint) Close()                                  {}
func (e *bareEndpoint) SetOnCloseAction(func())                 {}
