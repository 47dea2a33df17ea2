package etcdclient

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
)

// User is a user of etcd's with a password.
type User struct {
	Name string
	// Password is read anew each time when etcd wants it.
	Password func() (string, error)
}

// maxPassword bounds a password, in bytes.
const maxPassword = 1024

// PasswordFile returns what reads a password: a file's first line.
func PasswordFile(file string, read func(file string) ([]byte, error)) func() (string, error) {
	return func() (string, error) {
		b, err := read(file)
		if err != nil {
			return "", &FileError{"password_file", err}
		}
		line, _, _ := strings.Cut(string(b), "\n")
		if line = strings.TrimSuffix(line, "\r"); line == "" || len(line) > maxPassword {
			return "", &FileError{"password_file", fmt.Errorf("%s: its first line has %d bytes: a password has 1 to %d", file, len(line), maxPassword)}
		}
		return line, nil
	}
}

// tokens get a token from etcd when the first call needs it, and another one when etcd does not know
// it any more: after some minutes, or when a member has been started again. The client's own way
// would have New wait for etcd. It is safe for concurrent use.
type tokens struct {
	user   User
	client *clientv3.Client

	mu    sync.Mutex
	token string // "": none
}

var _ credentials.PerRPCCredentials = &tokens{}

// auth is the service by which tokens are got.
const auth = "/etcdserverpb.Auth"

// GetRequestMetadata is gRPC's.
func (t *tokens) GetRequestMetadata(ctx context.Context, uri ...string) (map[string]string, error) {
	if len(uri) > 0 && strings.HasSuffix(uri[0], auth) {
		return nil, nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.token == "" {
		password, err := t.user.Password()
		if err != nil {
			return nil, err
		}
		r, err := t.client.Authenticate(ctx, t.user.Name, password)
		switch {
		case errors.Is(err, rpctypes.ErrAuthNotEnabled):
			return nil, nil
		case err != nil:
			return nil, err
		}
		t.token = r.Token
	}
	return map[string]string{rpctypes.TokenFieldNameGRPC: t.token}, nil
}

// RequireTransportSecurity is gRPC's.
func (t *tokens) RequireTransportSecurity() bool { return false }

// look forgets the token if an answer says that etcd does not know it.
func (t *tokens) look(err error) error {
	if err == nil {
		return nil
	}
	if e := rpctypes.Error(err); errors.Is(e, rpctypes.ErrInvalidAuthToken) || errors.Is(e, rpctypes.ErrAuthOldRevision) {
		t.forget()
	}
	return err
}

func (t *tokens) forget() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.token = ""
}

func (t *tokens) unary(ctx context.Context, method string, request, reply any, c *grpc.ClientConn, call grpc.UnaryInvoker, o ...grpc.CallOption) error {
	return t.look(call(ctx, method, request, reply, c, o...))
}

func (t *tokens) stream(ctx context.Context, d *grpc.StreamDesc, c *grpc.ClientConn, method string, open grpc.Streamer, o ...grpc.CallOption) (grpc.ClientStream, error) {
	s, err := open(ctx, d, c, method, o...)
	if t.look(err) != nil {
		return nil, err
	}
	return &looked{s, t}, nil
}

// looked is a stream whose errors are looked at. etcd ends a watch that it refuses by a message.
type looked struct {
	grpc.ClientStream
	*tokens
}

// RecvMsg is gRPC's.
func (l *looked) RecvMsg(m any) error {
	if err := l.look(l.ClientStream.RecvMsg(m)); err != nil {
		return err
	}
	if r, ok := m.(interface{ GetCancelReason() string }); ok && r.GetCancelReason() != "" {
		l.forget()
	}
	return nil
}
