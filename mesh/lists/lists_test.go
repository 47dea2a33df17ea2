package lists

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"weft/encap"
	"weft/mesh"
	"weft/mesh/join"
)

func member(i int, key mesh.PrivateKey) mesh.Member {
	return mesh.Member{Name: fmt.Sprint("h", i), Endpoints: []netip.AddrPort{netip.AddrPortFrom(netip.AddrFrom4([4]byte{192, 0, 2, byte(i)}), 5740)},
		Prefixes: []netip.Prefix{netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(i)}), 32)}, Keys: []mesh.PublicKey{key.Public()}}
}

func keyOf(n int) mesh.PrivateKey {
	k, err := mesh.ParsePrivateKey(0, [32]byte{1, byte(n)})
	if err != nil {
		panic(err)
	}
	return k
}

// peers are what a Session has given its tunnel.
type peers struct {
	mu   sync.Mutex
	list []mesh.Peer
}

func (p *peers) set(list []mesh.Peer) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.list = list
	return nil
}

func (p *peers) now() []mesh.Peer {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.list
}

// session joins as h0 with key 0.
func session(t *testing.T, d join.Directory) (*join.Session, *peers) {
	t.Helper()
	m, key, p := member(0, keyOf(0)), keyOf(0), &peers{}
	s, err := join.New(join.Config{Directory: d, Name: m.Name, Endpoints: m.Endpoints, Prefixes: m.Prefixes, Keys: []mesh.PrivateKey{key}, Cipher: encap.UDPAESGCM,
		SetPeers: p.set, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s, p
}

func TestStatic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, p := session(t, Static(member(0, keyOf(0)), member(1, keyOf(1)), member(2, keyOf(2))))
		<-s.Ready()
		if st := s.Status(); len(p.now()) != 2 || st.Why != "" || !st.Registered {
			t.Errorf("%+v, %d peers", st, len(p.now()))
		}
		s.Close()
		s, _ = session(t, Static(member(1, keyOf(1))))
		<-s.Ready()
		if st := s.Status(); !strings.Contains(st.Why, `does not name "h0"`) {
			t.Errorf("%+v", st)
		}
		s.Close()
		s, _ = session(t, Static(member(0, keyOf(7))))
		<-s.Ready()
		if st := s.Status(); !strings.Contains(st.Why, "another key") {
			t.Errorf("%+v", st)
		}
		s.Close()
	})
}

// A file that is replaced or written anew is read again; what is not good changes nothing
// and is said.
func TestFile_isReadAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "members.json")
	write := func(replace bool, v any) {
		t.Helper()
		b, ok := v.([]byte)
		if !ok {
			var err error
			if b, err = json.Marshal(v); err != nil {
				t.Fatal(err)
			}
		}
		to := path
		if replace {
			to += ".new"
		}
		if err := os.WriteFile(to, b, 0o600); err != nil {
			t.Fatal(err)
		}
		if replace {
			if err := os.Rename(to, path); err != nil {
				t.Fatal(err)
			}
		}
	}
	within := func(what string, ok func() bool) {
		t.Helper()
		for end := time.Now().Add(2 * time.Minute); !ok(); time.Sleep(5 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatal("not in time: ", what)
			}
		}
	}
	list := []mesh.Member{member(0, keyOf(0)), member(1, keyOf(1))}
	write(false, list)
	s, p := session(t, File(path))
	<-s.Ready()
	key := func() encap.UDPKey {
		i := slices.IndexFunc(p.now(), func(p mesh.Peer) bool { return p.Name == "h1" })
		if i < 0 {
			return encap.UDPKey{}
		}
		return *p.now()[i].Key
	}
	first := key()
	write(true, append(list, member(2, keyOf(2))))
	within("one more", func() bool { return len(p.now()) == 2 })
	write(false, []byte("[{]"))
	within("it is said", func() bool { return strings.Contains(s.Status().Why, "no array of members") })
	if len(p.now()) != 2 || s.Status().Following {
		t.Errorf("%+v", s.Status())
	}
	write(true, []mesh.Member{member(0, keyOf(0)), member(1, keyOf(9))})
	within("another key", func() bool { return len(p.now()) == 1 && key() != first && key() != encap.UDPKey{} })
	within("it follows again", func() bool { return s.Status().Following && s.Status().Why == "" })
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	within("it is said", func() bool { return strings.Contains(s.Status().Why, "no such file") })
	if len(p.now()) != 1 {
		t.Error("a file that is gone has taken the peers along")
	}
}

func TestParseMembers_refuses(t *testing.T) {
	one, err := json.Marshal(member(1, keyOf(1)))
	if err != nil {
		t.Fatal(err)
	}
	for want, text := range map[string]string{
		"array": "{}", "twice": "[" + string(one) + "," + string(one) + "]", "member 0": "[{}]", "no array": "[" + string(one) + "] x",
	} {
		if _, err := ParseMembers([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// records are what a domain has.
type records struct {
	mu   sync.Mutex
	srv  []*net.SRV
	txt  map[string][]string
	addr map[string][]netip.Addr
	err  error

	timeout string // the host that does not answer
}

func (r *records) LookupSRV(_ context.Context, service, proto, name string) (string, []*net.SRV, error) {
	if service != "weft" || proto != "udp" || name != "mesh.example" {
		return "", nil, fmt.Errorf("%s %s %s", service, proto, name)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return "", slices.Clone(r.srv), r.err
}

func (r *records) LookupTXT(_ context.Context, name string) ([]string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if name == r.timeout {
		return nil, &net.DNSError{Err: "timeout", IsTimeout: true}
	}
	if t, ok := r.txt[name]; ok {
		return t, nil
	}
	return nil, &net.DNSError{Err: "no TXT record", IsNotFound: true}
}

func (r *records) LookupNetIP(_ context.Context, _, name string) ([]netip.Addr, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.addr[name], nil
}

func TestDNS(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &records{txt: map[string][]string{}, addr: map[string][]netip.Addr{}}
		add := func(host, text string, addrs ...string) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.srv = append(r.srv, &net.SRV{Target: host, Port: 5740})
			host = strings.ToLower(host)
			r.txt[host] = []string{"v=spf1 -all", text}
			for _, a := range addrs {
				r.addr[host] = append(r.addr[host], netip.MustParseAddr(a))
			}
		}
		good := func(i int) string {
			return fmt.Sprintf("weft1 prefixes=10.0.0.%d/32,fd00::%d/128 key=0:%v", i, i, keyOf(i).Public())
		}
		add("h0.", good(0), "192.0.2.9")
		add("b.example.", good(2), "2001:db8::2", "192.0.2.2")
		add("c.example.", "weft1 prefixes=10.0.0.3/32 key=0:short", "192.0.2.3")
		add("d.example.", "weft1 prefixes=10.0.0.4/32 colour=red", "192.0.2.4")
		add("e.example.", good(5)) // has no address
		add("f.example.", "weft1 prefixes=10.0.0.6 key=0:x", "192.0.2.6")
		r.srv = append(r.srv, &net.SRV{Target: "g.example.", Port: 1})
		d := &domainDirectory{domain: "mesh.example", every: 30 * time.Second, resolver: r}
		s, p := session(t, d)
		<-s.Ready()
		if got := p.now(); len(got) != 1 || got[0].Name != "b.example" || got[0].Endpoint != netip.MustParseAddrPort("192.0.2.2:5740") || fmt.Sprint(got[0].Prefixes) != "[10.0.0.2/32 fd00::2/128]" || s.Status().Why != "" {
			t.Errorf("%+v, %+v", got, s.Status())
		}
		add("H.example.", good(8), "192.0.2.8")
		time.Sleep(31 * time.Second)
		if len(p.now()) != 2 {
			t.Error(p.now())
		}
		r.mu.Lock()
		r.timeout = "h.example."
		r.mu.Unlock()
		time.Sleep(time.Minute)
		if len(p.now()) != 2 {
			t.Errorf("a host that does not answer has gone: %+v", p.now())
		}
		r.mu.Lock()
		r.err = errors.New("SERVFAIL")
		r.mu.Unlock()
		time.Sleep(time.Minute)
		if len(p.now()) != 2 || !strings.Contains(s.Status().Why, "SERVFAIL") {
			t.Errorf("%+v, %+v", p.now(), s.Status())
		}
		s.Close()
	})
}
