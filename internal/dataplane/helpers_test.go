package dataplane

import (
	"time"

	"weft/encap"
	"weft/flowcell"
	"weft/internal/dataplane/dataplanetest"
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

// wrapOne has a packet that lies in buf behind encap.MaxOverhead go through all stages but
// the outlet, and returns what is to be sent; nil if it is dropped.
func (e *Egress) wrapOne(buf []byte, now time.Duration) []byte {
	o := &e.out
	o.Begin(len(buf) - encap.MaxOverhead)
	o.Parts = append(o.Parts, buf[encap.MaxOverhead:])
	if !e.classify(o) || !e.cut(o, 0, now) {
		return nil
	}
	if o.pkt.Flags&flowcell.FlagSYN != 0 && e.strips(o) {
		StripTimestamps(buf[encap.MaxOverhead:])
	}
	return e.wrap(buf, o, now)
}
