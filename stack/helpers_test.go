package stack

import (
	"net/netip"
	"time"

	"weft/internal/dataplane"
	"weft/internal/dataplane/dataplanetest"
	"weft/liveness"
	"weft/topology"
)

// What the tests of both halves of a host share.
var (
	fatTree         = dataplanetest.FatTree
	addrA           = dataplanetest.AddrA
	addrB           = dataplanetest.AddrB
	node            = dataplanetest.Node
	between         = dataplanetest.Between
	eventually      = dataplanetest.Eventually
	superPair       = dataplanetest.SuperPair
	fixed           = dataplanetest.Fixed
	with            = dataplanetest.With
	withTCPChecksum = dataplanetest.WithTCPChecksum
	tcpSegment      = dataplanetest.TCPSegment
	echoRequest     = dataplanetest.EchoRequest
	dataPacket      = dataplanetest.DataPacket
	switchError     = dataplanetest.SwitchError
	plainError      = dataplanetest.PlainError
)

type (
	superMemory = dataplanetest.SuperMemory
	handClock   = dataplanetest.HandClock
	stillClock  = dataplanetest.StillClock
)

// encapsulator says that it encapsulates, and takes what it is told. Nothing is
// encapsulated: on a cable between two Hosts nobody needs it.
type encapsulator struct{}

func (encapsulator) Encapsulates() bool                            { return true }
func (encapsulator) SetTopology(*topology.Topology) error          { return nil }
func (encapsulator) SetCarriage(*liveness.Carriage) error          { return nil }
func (encapsulator) Choose(netip.Prefix, int, time.Duration) error { return nil }

// encapsulating is a device that says that it encapsulates.
type encapsulating struct {
	dataplane.GatewayDevice
	encapsulator
}
