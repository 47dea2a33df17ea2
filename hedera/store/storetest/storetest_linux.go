// Package storetest runs members of etcd in a test's process.
package storetest

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/grpclog"
	"google.golang.org/grpc/status"

	"weft/internal/kernel/kerneltest"
)

func init() { grpclog.SetLoggerV2(grpclog.NewLoggerV2(discard{}, discard{}, discard{})) }

type discard struct{}

func (discard) Write(b []byte) (int, error) { return len(b), nil }

// Cluster is members of etcd in this process.
type Cluster struct {
	t       testing.TB
	dir     string
	mu      sync.Mutex
	members []*member
	peers   []url.URL
	clients []url.URL
	before  func(method string) error // Intercept's
}

// member is one that runs.
type member struct {
	*embed.Etcd
	sever context.CancelFunc // ends its clients' streams, as the death of a process does
}

// severed is a stream that ends with a context, too.
type severed struct {
	grpc.ServerStream
	ctx context.Context
}

func (s severed) Context() context.Context { return s.ctx }

// severable returns the option of a server whose streams end with a context. Else a member
// that is closed waits for them for seconds, while its clients believe to be heard.
func severable(killed context.Context) grpc.ServerOption {
	return grpc.ChainStreamInterceptor(func(srv any, s grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
		ctx, cancel := context.WithCancel(s.Context())
		defer cancel()
		defer context.AfterFunc(killed, cancel)()
		return handler(srv, severed{s, ctx})
	})
}

// Intercept has all members call before with the name of each unary call, such as
// /etcdserverpb.KV/Txn, before they carry it out. An error is their answer. nil ends that.
func (c *Cluster) Intercept(before func(method string) error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.before = before
}

// intercepted returns the option of a member that does what Intercept says.
func (c *Cluster) intercepted() grpc.ServerOption {
	return grpc.ChainUnaryInterceptor(func(ctx context.Context, request any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		c.mu.Lock()
		before := c.before
		c.mu.Unlock()
		if before != nil {
			if err := before(info.FullMethod); err != nil {
				return nil, status.Error(codes.FailedPrecondition, err.Error())
			}
		}
		return handler(ctx, request)
	})
}

// New starts n members.
func New(t testing.TB, n int) *Cluster {
	t.Helper()
	c := &Cluster{t: t, dir: t.TempDir(), members: make([]*member, n)}
	var held []net.Listener // so that the ports are different ones
	address := func() url.URL {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, l)
		return url.URL{Scheme: "http", Host: l.Addr().String()}
	}
	for range n {
		c.peers, c.clients = append(c.peers, address()), append(c.clients, address())
	}
	for _, l := range held {
		l.Close()
	}
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { c.Start(i) })
	}
	all.Wait()
	t.Cleanup(func() {
		for i := range n {
			c.Kill(i)
		}
	})
	return c
}

// Start starts a member, for the first time or again.
func (c *Cluster) Start(i int) {
	e := embed.NewConfig()
	e.Name, e.Dir = fmt.Sprint("m", i), filepath.Join(c.dir, fmt.Sprint("m", i))
	e.ListenPeerUrls, e.AdvertisePeerUrls = c.peers[i:i+1], c.peers[i:i+1]
	e.ListenClientUrls, e.AdvertiseClientUrls = c.clients[i:i+1], c.clients[i:i+1]
	e.InitialCluster = ""
	for j, p := range c.peers {
		if j > 0 {
			e.InitialCluster += ","
		}
		e.InitialCluster += fmt.Sprintf("m%d=%s", j, p.String())
	}
	e.TickMs, e.ElectionMs, e.UnsafeNoFsync = 20, 200, true
	e.LogLevel = "fatal"
	e.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zap.New(zapcore.NewNopCore()))
	killed, sever := context.WithCancel(context.Background())
	e.GRPCAdditionalServerOptions = append(e.GRPCAdditionalServerOptions, severable(killed), c.intercepted())
	m, err := embed.StartEtcd(e)
	if err != nil {
		sever()
		c.t.Errorf("etcd member %d: %v", i, err)
		return
	}
	select {
	case <-m.Server.ReadyNotify():
	case <-time.After(kerneltest.Patience):
		c.t.Errorf("etcd member %d is not ready", i)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.members[i] = &member{m, sever}
}

// Kill ends a member without a word to the others.
func (c *Cluster) Kill(i int) {
	c.mu.Lock()
	m := c.members[i]
	c.members[i] = nil
	c.mu.Unlock()
	if m != nil {
		m.sever()
		m.Server.HardStop()
		m.Close()
	}
}

// Client returns a client of all members.
func (c *Cluster) Client() *clientv3.Client {
	c.t.Helper()
	cl, err := clientv3.New(clientv3.Config{Endpoints: c.Endpoints(), DialTimeout: kerneltest.Patience, Logger: zap.NewNop(),
		DialKeepAliveTime: time.Second, DialKeepAliveTimeout: time.Second})
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { cl.Close() })
	return cl
}

// Endpoints returns the members' addresses for clients.
func (c *Cluster) Endpoints() (list []string) {
	for _, u := range c.clients {
		list = append(list, u.Host)
	}
	return list
}

// Killed returns the members that do not run.
func (c *Cluster) Killed() (list []int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, m := range c.members {
		if m == nil {
			list = append(list, i)
		}
	}
	return list
}
