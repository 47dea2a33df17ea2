package socket

import (
	"encoding/binary"
	"net"
	"strings"
	"testing"
	"time"

	"weft/internal/capture"
	"weft/internal/kernel"
	"weft/internal/kernel/kerneltest"
)

// A socket sees what passes its device, whole or cut, with direction and times, until it is
// stopped.
func TestSocket_sees(t *testing.T) {
	ns := kerneltest.Namespace(t, "capture")
	kerneltest.Shell(t, ns, "ip link set lo up")
	var sent []byte
	for i := range 3 {
		sent = append(sent, byte(i))
	}
	var s *Socket
	var c net.Conn
	if err := kernel.InNamespace(ns, func() (err error) {
		if s, err = Open(Config{Device: "lo", Name: "h:lo", Snap: 14 + 28 + 2, Ring: 2 * blockSize}); err != nil {
			return err
		}
		c, err = net.Dial("udp4", "127.0.0.1:9999")
		return err
	}); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	defer c.Close()
	before := time.Now()
	const packets = 5
	for range packets {
		c.Write(sent) // from the second on refused by nobody at the port
	}
	out, in := 0, 0
	err := s.Run(func(r *capture.Record) {
		l, err := new(capture.Decoder).Decode(r.Link, r.Bytes, r.Length)
		if err != nil || l.Packet.Flow.DstPort != 9999 {
			return
		}
		if r.Out {
			out++
		} else {
			in++
		}
		if r.Interface != "h:lo" || len(r.Bytes) != 14+28+2 || r.Length != 14+28+len(sent) || binary.BigEndian.Uint16(r.Bytes[12:]) != 0x0800 {
			t.Errorf("%+v", r)
		}
		if r.At.Before(before.Add(-time.Minute)) || r.At.After(time.Now().Add(time.Minute)) {
			t.Errorf("seen at %v", r.At)
		}
		if out >= 1 && in >= 1 {
			s.Stop()
		}
	})
	if err != nil || out == 0 || in == 0 || s.Seen() == 0 || s.Dropped() != 0 {
		t.Errorf("%d out, %d in, %d dropped, %v", out, in, s.Dropped(), err)
	}
}

func TestOpen_errors(t *testing.T) {
	if _, err := Open(Config{Device: "nosuch0"}); err == nil || !strings.Contains(err.Error(), "nosuch0") || !strings.Contains(err.Error(), "ip link") {
		t.Error(err)
	}
}
