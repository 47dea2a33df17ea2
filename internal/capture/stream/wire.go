// Package stream carries the packets of a Tap to another process: the daemon writes them to
// who asks at its status socket.
//
// A stream is frames. Each has a header of 48 bytes in network byte order, then the packet's
// first bytes:
//
//	 0  4  magic 77666370 ("wfcp")
//	 4  1  version 1
//	 5  1  point, a capture.Point
//	 6  1  flags: 1 it was leaving, 2 path is set
//	 7  1  cause, its place in the list of causes; 0: none
//	 8  8  time of day, nanoseconds since 1970
//	16  8  hold, nanoseconds
//	24  8  how many packets found no room so far
//	32  4  path
//	36  4  length of the packet
//	40  4  how many bytes follow
//	44  4  0
package stream

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"weft/internal/capture"
	"weft/internal/capture/tap"
	"weft/resequencer"
)

const (
	magic      = 0x77666370
	version    = 1
	headerLen  = 48
	flagOut    = 1
	flagPath   = 2
	maxCapture = tap.DefaultSnap
)

// causes are those of the resequencer, in the order of their numbers.
var causes = []string{"", string(resequencer.CauseInOrder), string(resequencer.CauseFilled), string(resequencer.CauseTimedOut),
	string(resequencer.CauseLoss), string(resequencer.CauseRetransmission), string(resequencer.CauseBound),
	string(resequencer.CauseFlushed), string(resequencer.CauseStray), string(resequencer.CausePassed)}

var interfaces = map[capture.Point]string{capture.PointSent: tap.Sent, capture.PointArrived: tap.Arrived, capture.PointDelivered: tap.Delivered}

// errFrame says that what came is no frame.
var errFrame = errors.New("capture: no frame of a capture")

// Append appends a frame to b. dropped is how many packets found no room so far.
func Append(b []byte, r *capture.Record, dropped uint64) []byte {
	n := min(len(r.Bytes), maxCapture)
	var flags byte
	if r.Out {
		flags |= flagOut
	}
	if r.HasPath {
		flags |= flagPath
	}
	b = binary.BigEndian.AppendUint32(b, magic)
	b = append(b, version, byte(r.Point), flags, byte(max(slices.Index(causes, r.Cause), 0)))
	b = binary.BigEndian.AppendUint64(b, uint64(r.At.UnixNano()))
	b = binary.BigEndian.AppendUint64(b, uint64(r.Hold))
	b = binary.BigEndian.AppendUint64(b, dropped)
	b = binary.BigEndian.AppendUint32(b, uint32(r.Path))
	b = binary.BigEndian.AppendUint32(b, uint32(r.Length))
	b = binary.BigEndian.AppendUint32(b, uint32(n))
	b = binary.BigEndian.AppendUint32(b, 0)
	return append(b, r.Bytes[:n]...)
}

// Next reads a frame. At the end of the stream the error is io.EOF.
func Next(from io.Reader) (r capture.Record, dropped uint64, err error) {
	var h [headerLen]byte
	if _, err := io.ReadFull(from, h[:]); err != nil {
		return r, 0, err
	}
	n := binary.BigEndian.Uint32(h[40:])
	iface, known := interfaces[capture.Point(h[5])]
	switch {
	case binary.BigEndian.Uint32(h[:]) != magic:
		return r, 0, errFrame
	case h[4] != version:
		return r, 0, fmt.Errorf("capture: frames of version %d; this weft reads version %d: use the daemon's own", h[4], version)
	case !known || n > maxCapture || n > binary.BigEndian.Uint32(h[36:]) || int(h[7]) >= len(causes):
		return r, 0, errFrame
	}
	r = capture.Record{Point: capture.Point(h[5]), Interface: iface, Out: h[6]&flagOut != 0, HasPath: h[6]&flagPath != 0, Cause: causes[h[7]],
		At: time.Unix(0, int64(binary.BigEndian.Uint64(h[8:]))), Hold: time.Duration(binary.BigEndian.Uint64(h[16:])),
		Path: int(binary.BigEndian.Uint32(h[32:])), Length: int(binary.BigEndian.Uint32(h[36:])), Bytes: make([]byte, n)}
	if _, err := io.ReadFull(from, r.Bytes); err != nil {
		return r, 0, io.ErrUnexpectedEOF
	}
	return r, binary.BigEndian.Uint64(h[24:]), nil
}
