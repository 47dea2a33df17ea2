package main

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"net"
	"sync/atomic"
	"time"

	"github.com/quic-go/quic-go"
)

// counted is what quic-go has counted.
type counted struct{ bytes, packets, lost uint64 }

// measured is a transfer.
type measured struct {
	time     time.Duration
	stream   uint64  // bytes of the stream, in this time
	received counted // in this time
	all      counted // received from the beginning to the end
	sent     counted // the same, sent
}

// transfer sends by a stream for a time.
func (r *rig) transfer(ctx context.Context) (m measured, err error) {
	ctx, cancel := context.WithTimeout(ctx, r.time+warmup+20*time.Second)
	defer cancel()
	cert, err := certificate()
	if err != nil {
		return m, err
	}
	to, err := r.packetConn(r.to, port)
	if err != nil {
		return m, err
	}
	server := &quic.Transport{Conn: to}
	defer to.Close()
	defer server.Close()
	protocols := []string{"weft-bench"}
	listener, err := server.Listen(&tls.Config{Certificates: []tls.Certificate{cert}, NextProtos: protocols}, nil)
	if err != nil {
		return m, err
	}
	defer listener.Close()
	from, err := r.packetConn(r.from, 0)
	if err != nil {
		return m, err
	}
	client := &quic.Transport{Conn: from}
	defer from.Close()
	defer client.Close()
	out, err := client.Dial(ctx, &net.UDPAddr{IP: r.to.Addr.AsSlice(), Port: port}, &tls.Config{InsecureSkipVerify: true, NextProtos: protocols}, nil)
	if err != nil {
		return m, err
	}
	in, err := listener.Accept(ctx)
	if err != nil {
		return m, err
	}
	stream, err := out.OpenUniStreamSync(ctx)
	if err != nil {
		return m, err
	}
	var stopped atomic.Bool
	written := make(chan error, 1)
	go func() {
		var err error
		for b := make([]byte, 1<<16); err == nil && !stopped.Load(); {
			_, err = stream.Write(b)
		}
		stream.Close()
		written <- err
	}()
	arriving, err := in.AcceptUniStream(ctx)
	if err != nil {
		return m, err
	}
	var bytes atomic.Uint64
	read := make(chan struct{})
	go func() {
		defer close(read)
		for b := make([]byte, 1<<16); ; {
			n, err := arriving.Read(b)
			bytes.Add(uint64(n))
			if err != nil {
				return
			}
		}
	}()
	now := func() counted {
		s := in.ConnectionStats()
		return counted{bytes: s.BytesReceived, packets: s.PacketsReceived}
	}
	wait(ctx, warmup)
	began, first, firstBytes := time.Now(), now(), bytes.Load()
	wait(ctx, r.time)
	last := now()
	m.time, m.stream = time.Since(began), bytes.Load()-firstBytes
	m.received = counted{bytes: last.bytes - first.bytes, packets: last.packets - first.packets}
	stopped.Store(true)
	if err := <-written; err != nil {
		return m, err
	}
	select {
	case <-read:
	case <-ctx.Done():
		return m, ctx.Err()
	}
	wait(ctx, time.Second/5) // what is on its way, so that both ends have counted the same
	s := out.ConnectionStats()
	m.sent = counted{bytes: s.BytesSent, packets: s.PacketsSent, lost: s.PacketsLost}
	m.all = now()
	return m, out.CloseWithError(0, "")
}

func wait(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

func certificate() (tls.Certificate, error) {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	t := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(24 * time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, t, t, public, private)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: private}, err
}
