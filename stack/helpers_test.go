package stack

import "weft/internal/dataplane/dataplanetest"

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
