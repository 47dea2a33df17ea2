package fabric

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cilium/ebpf/ringbuf"
)

// Notices reads of the packets that the congestion points of a Meter sample (QCN). It holds
// some hundreds of them; more are lost and counted. Only one of all processes that share the
// meter may read. Close may be called while Next waits; else it is not safe for concurrent use.
type Notices struct {
	ring   *ringbuf.Reader
	record ringbuf.Record
}

// Notices begins to read. It needs no capability.
func (m *Meter) Notices() (*Notices, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.handle == nil {
		return nil, errMeterClosed
	}
	ring, err := ringbuf.NewReader(m.at.Maps[meterMapNotices])
	if err != nil {
		return nil, fmt.Errorf("meter: notices: %w", err)
	}
	return &Notices{ring: ring}, nil
}

// ErrNoticesClosed is what Next fails with after Close.
var ErrNoticesClosed = ringbuf.ErrClosed

// noticeLen is struct notice of bpf/qcn.h.
const noticeLen = 48

// errShortNotice is what Next fails with at a record that is none. The next one may be.
var errShortNotice = errors.New("meter: a notice is too short")

// Next waits for a notice.
func (n *Notices) Next() (Notice, error) {
	if err := n.ring.ReadInto(&n.record); err != nil {
		return Notice{}, err
	}
	b := n.record.RawSample
	if len(b) < noticeLen {
		return Notice{}, errShortNotice
	}
	return Notice{
		Port: int(binary.NativeEndian.Uint32(b)), Level: uint8(binary.NativeEndian.Uint32(b[4:])),
		Queue: binary.NativeEndian.Uint64(b[8:]), Packet: [28]byte(b[16:]),
	}, nil
}

// Close ends reading.
func (n *Notices) Close() error { return n.ring.Close() }
