// Package etcdclient makes clients of etcd: those of schedulers, and of hosts of a mesh.
package etcdclient

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
)

// MaxEndpoints is how many members of etcd a client knows at most.
const MaxEndpoints = 16

// CheckEndpoints says what is wrong with a list of addresses of etcd's members.
func CheckEndpoints(all []string) error {
	if n := len(all); n < 1 || n > MaxEndpoints {
		return fmt.Errorf("are %d: give 1 to %d addresses with ports, such as 127.0.0.1:2379", n, MaxEndpoints)
	}
	for _, a := range all {
		if host, port, ok := strings.Cut(a, ":"); !ok || host == "" || port == "" || strings.Contains(a, "/") {
			return fmt.Errorf("%q is no address with a port, such as 127.0.0.1:2379", a)
		}
	}
	return nil
}

// TLS are names of files in PEM: CA proves etcd, Cert and Key prove the client. Each may be
// missing; Cert and Key come together.
type TLS struct{ CA, Cert, Key string }

// FileError is about a file of TLS.
type FileError struct {
	Option string // ca, cert
	Err    error
}

func (e *FileError) Error() string { return e.Option + ": " + e.Err.Error() }
func (e *FileError) Unwrap() error { return e.Err }

// Config reads the files by read. Its errors are *FileError.
func (t TLS) Config(read func(file string) ([]byte, error)) (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if (t.Cert == "") != (t.Key == "") {
		return nil, &FileError{"cert", fmt.Errorf("cert and key belong together: give both or none")}
	}
	if t.CA != "" {
		pem, err := read(t.CA)
		if err != nil {
			return nil, &FileError{"ca", err}
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, &FileError{"ca", fmt.Errorf("%s has no certificate in PEM", t.CA)}
		}
	}
	if t.Cert != "" {
		pair, err := tls.LoadX509KeyPair(t.Cert, t.Key)
		if err != nil {
			return nil, &FileError{"cert", err}
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}

// New makes a client, without TLS if secure is nil, and of nobody if user is nil. It does not wait for
// etcd. A member that does not answer for the time alive is given up.
func New(endpoints []string, secure *tls.Config, user *User, alive time.Duration) (*clientv3.Client, error) {
	scheme := "http://"
	if secure != nil {
		scheme = "https://"
	}
	var list []string
	for _, e := range endpoints {
		list = append(list, scheme+e)
	}
	c := clientv3.Config{Endpoints: list, TLS: secure, Logger: zap.NewNop(), DialKeepAliveTime: alive, DialKeepAliveTimeout: alive}
	if user == nil {
		return clientv3.New(c)
	}
	t := &tokens{user: *user}
	c.DialOptions = []grpc.DialOption{grpc.WithPerRPCCredentials(t), grpc.WithChainUnaryInterceptor(t.unary), grpc.WithChainStreamInterceptor(t.stream)}
	client, err := clientv3.New(c)
	t.client = client // nothing is called before
	return client, err
}
