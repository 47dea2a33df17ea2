package walker

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"weft/encap"
	"weft/flowcell"
	"weft/internal/capture"
	"weft/internal/capture/socket"
	"weft/internal/exitcode"
	"weft/internal/hops"
)

const (
	// turn is how often it is looked whether something is to be sent.
	turn = 20 * time.Millisecond
	// ring is that of the packet sockets, of which little is wanted of much that comes.
	ring = 4 << 20
	snap = 256
)

// Run walks until ctx is done or all is answered. uplinks are the devices, in the order of
// hops.Path's Uplink. show is called now and then, and once at the end. That ctx is done is no
// error.
func Run(ctx context.Context, w *hops.Walk, uplinks []string, show func()) error {
	s, err := open(uplinks)
	if err != nil {
		return err
	}
	defer s.close()
	came := make(chan capture.Record, 1024)
	done := make(chan struct{})
	ended := make(chan error, len(s.in))
	var reading sync.WaitGroup
	for _, in := range s.in {
		reading.Go(func() {
			ended <- in.Run(func(r *capture.Record) {
				if !concerns(r) {
					return
				}
				q := *r
				q.Bytes = append([]byte(nil), r.Bytes...)
				select {
				case came <- q:
				case <-done:
				}
			})
		})
	}
	defer func() {
		close(done)
		for _, in := range s.in {
			in.Stop()
		}
		reading.Wait()
	}()
	return s.walk(ctx, w, came, ended, show)
}

func (s *sockets) walk(ctx context.Context, w *hops.Walk, came <-chan capture.Record, ended <-chan error, show func()) error {
	defer show()
	tick := time.NewTicker(turn)
	defer tick.Stop()
	shown := time.Now()
	for !w.Done() {
		select {
		case <-ctx.Done():
			return nil
		case r := <-came:
			take(w, &r)
			continue
		case err := <-ended:
			if err == nil {
				err = errors.New("the socket was closed")
			}
			return fmt.Errorf("answers cannot be read: %w", err)
		case now := <-tick.C:
			for p, ok := w.Next(now); ok; p, ok = w.Next(now) {
				if err := s.send(&p); err != nil {
					return err
				}
			}
			w.Expire(now)
			if now.Sub(shown) >= 500*time.Millisecond {
				shown = now
				show()
			}
		}
	}
	return w.Err()
}

// concerns reports whether a packet may be one of ours, or an answer.
func concerns(r *capture.Record) bool {
	l, err := new(capture.Decoder).Decode(r.Link, r.Bytes, r.Length)
	if err != nil || !l.IP {
		return false
	}
	p := &l.Packet
	return p.Flow.Proto == flowcell.ProtoICMP || p.Flow.Proto == flowcell.ProtoICMPv6 ||
		p.Flow.Proto == flowcell.ProtoUDP && p.Flow.DstPort == encap.ProbePort
}

// take tells the Walk of a packet.
func take(w *hops.Walk, r *capture.Record) {
	l, err := new(capture.Decoder).Decode(r.Link, r.Bytes, r.Length)
	if err != nil {
		return
	}
	if !r.Out {
		w.Receive(l.Inner[:min(len(l.Inner), l.Packet.Length)], r.At)
	} else if len(l.UDPPayload) >= 16 {
		w.Left(binary.BigEndian.Uint64(l.UDPPayload[8:]), r.At)
	}
}

// sockets are one for each uplink.
type sockets struct {
	in       []*socket.Socket
	out, six []int
}

func open(uplinks []string) (s *sockets, err error) {
	s = new(sockets)
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	for _, device := range uplinks {
		for _, family := range []struct {
			domain int
			list   *[]int
		}{{unix.AF_INET, &s.out}, {unix.AF_INET6, &s.six}} {
			// IPPROTO_RAW sends whole packets and receives nothing (raw(7)).
			fd, err := unix.Socket(family.domain, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.IPPROTO_RAW)
			if err != nil {
				if errors.Is(err, unix.EPERM) {
					err = exitcode.AsAbsent(fmt.Errorf("%w: CAP_NET_RAW is missing: run it as root", err))
				}
				return s, fmt.Errorf("raw socket: %w", err)
			}
			*family.list = append(*family.list, fd)
			if len(uplinks) > 1 {
				if err := unix.BindToDevice(fd, device); err != nil {
					return s, fmt.Errorf("raw socket of %s: %w", device, err)
				}
			}
		}
		in, err := socket.Open(socket.Config{Device: device, Snap: snap, Ring: ring})
		if err != nil {
			return s, err
		}
		s.in = append(s.in, in)
	}
	return s, nil
}

// send sends a packet. What a queue has no room for counts as lost.
func (s *sockets) send(p *hops.Packet) (err error) {
	if p.To.Is6() {
		err = unix.Sendto(s.six[p.Uplink], p.Bytes, 0, &unix.SockaddrInet6{Addr: p.To.As16()})
	} else {
		err = unix.Sendto(s.out[p.Uplink], p.Bytes, 0, &unix.SockaddrInet4{Addr: p.To.As4()})
	}
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) {
		return fmt.Errorf("send to %v: %w: a firewall of this host drops it", p.To, err)
	}
	if errors.Is(err, unix.ENETUNREACH) || errors.Is(err, unix.EHOSTUNREACH) {
		return fmt.Errorf("send to %v: %w: this host has no route to the bouncing switch; weft doctor says why", p.To, err)
	}
	if err != nil && !errors.Is(err, unix.ENOBUFS) && !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.ENETDOWN) { // these count as losses
		return fmt.Errorf("send to %v: %w", p.To, err)
	}
	return nil
}

func (s *sockets) close() {
	for _, in := range s.in {
		in.Close()
	}
	for _, fd := range append(s.out, s.six...) {
		unix.Close(fd)
	}
}
