package schedulerlab

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// readyLimit is how long etcd may take to start.
const readyLimit = 60 * time.Second

// startEtcd starts the only member of a cluster, which listens in the network namespace of the
// calling thread. dir is empty.
func startEtcd(dir string) (m *embed.Etcd, endpoint string, err error) {
	peer, err := freeURL()
	if err != nil {
		return nil, "", err
	}
	client, err := freeURL()
	if err != nil {
		return nil, "", err
	}
	c := embed.NewConfig()
	c.Name, c.Dir = "lab", dir
	c.ListenPeerUrls, c.AdvertisePeerUrls = []url.URL{peer}, []url.URL{peer}
	c.ListenClientUrls, c.AdvertiseClientUrls = []url.URL{client}, []url.URL{client}
	c.InitialCluster = c.InitialClusterFromName(c.Name)
	c.LogLevel = "fatal"
	c.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zap.New(zapcore.NewNopCore()))
	if m, err = embed.StartEtcd(c); err != nil {
		return nil, "", fmt.Errorf("etcd: %w", err)
	}
	select {
	case <-m.Server.ReadyNotify():
		return m, client.Host, nil
	case <-time.After(readyLimit):
		m.Close()
		return nil, "", errors.New("etcd: not ready within " + readyLimit.String())
	}
}

func freeURL() (url.URL, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return url.URL{}, fmt.Errorf("etcd: %w", err)
	}
	defer l.Close()
	return url.URL{Scheme: "http", Host: l.Addr().String()}, nil
}
