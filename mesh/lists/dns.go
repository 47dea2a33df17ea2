package lists

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"weft/mesh"
	"weft/mesh/join"
)

// DNS is a directory in a domain, which is asked every so often (0: 30 s). The domain's SRV
// records of _weft._udp name the members' hosts and ports, A and AAAA records their
// addresses, and a TXT record of each host what is behind it and its key:
//
//	_weft._udp.mesh.example.  SRV  0 0 5740 a.example.
//	a.example.                A    192.0.2.7
//	a.example.                TXT  "weft1 prefixes=10.9.0.2/32,fd00:9::2/128 key=0:BASE64"
//
// A member's name is its host's in small letters, without the last dot. A host whose records
// are not good is left out. Who cannot be asked stays as it was: the domain, or a host. Use
// DNSSEC: whoever forges the answers says who has which key.
func DNS(domain string, every time.Duration) join.Directory {
	return &domainDirectory{domain: domain, every: cmp.Or(every, 30*time.Second), resolver: net.DefaultResolver}
}

// resolver is *net.Resolver's part.
type resolver interface {
	LookupSRV(ctx context.Context, service, proto, name string) (string, []*net.SRV, error)
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
	LookupTXT(ctx context.Context, name string) ([]string, error)
}

type domainDirectory struct {
	list
	domain   string
	every    time.Duration
	resolver resolver
	former   map[string]mesh.Member
}

func (d *domainDirectory) Watch(ctx context.Context, told func(join.Update)) error {
	for {
		members, err := d.ask(ctx)
		if err != nil {
			return err
		}
		told(join.Update{All: true, Put: members})
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(d.every):
		}
	}
}

// ask returns the members by name.
func (d *domainDirectory) ask(ctx context.Context) (members []mesh.Member, err error) {
	_, records, err := d.resolver.LookupSRV(ctx, "weft", "udp", d.domain)
	if err != nil {
		return nil, fmt.Errorf("SRV records of _weft._udp.%s: %w", d.domain, err)
	}
	if len(records) > mesh.MaxMembers {
		return nil, fmt.Errorf("%s has %d SRV records: may have %d", d.domain, len(records), mesh.MaxMembers)
	}
	ports := make(map[string][]uint16)
	for _, r := range records {
		host := strings.ToLower(r.Target)
		ports[host] = append(ports[host], r.Port)
	}
	names := make([]string, 0, len(ports))
	for name := range ports {
		names = append(names, name)
	}
	slices.Sort(names)
	var left []error
	now := make(map[string]mesh.Member, len(names))
	defer func() { d.former = now }()
	for i, name := range names {
		m, err := d.member(ctx, name, ports[name])
		var unanswered *net.DNSError
		if errors.As(err, &unanswered) && !unanswered.IsNotFound {
			if former, ok := d.former[name]; ok {
				m, err = former, nil
			}
		}
		if err == nil {
			now[name] = m
		} else {
			left = append(left, fmt.Errorf("%s: %w", name, err))
			continue
		}
		members = append(members, numbered(m, i))
	}
	if len(members) == 0 && len(left) > 0 {
		return nil, fmt.Errorf("no host of %s has good records: %w", d.domain, errors.Join(left...))
	}
	return members, nil
}

func (d *domainDirectory) member(ctx context.Context, host string, ports []uint16) (m mesh.Member, err error) {
	texts, err := d.resolver.LookupTXT(ctx, host)
	if err != nil {
		return m, err
	}
	i := slices.IndexFunc(texts, func(t string) bool { return strings.HasPrefix(t, "weft1 ") })
	if i < 0 {
		return m, errors.New("it has no TXT record that begins with weft1")
	}
	if m, err = parseText(texts[i]); err != nil {
		return m, err
	}
	addrs, err := d.resolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return m, err
	}
	m.Name = strings.TrimSuffix(host, ".")
	for _, a := range addrs {
		m.Endpoints = append(m.Endpoints, netip.AddrPortFrom(a.Unmap(), ports[0]))
	}
	slices.SortFunc(m.Endpoints, netip.AddrPort.Compare)
	_, err = m.Encode() // as it would be refused elsewhere
	return m, err
}

// parseText reads a TXT record.
func parseText(text string) (m mesh.Member, err error) {
	for _, field := range strings.Fields(text)[1:] {
		key, value, _ := strings.Cut(field, "=")
		switch key {
		case "prefixes":
			for _, s := range strings.Split(value, ",") {
				p, err := netip.ParsePrefix(s)
				if err != nil {
					return m, fmt.Errorf("prefixes: %w", err)
				}
				m.Prefixes = append(m.Prefixes, p)
			}
		case "key":
			generation, point, _ := strings.Cut(value, ":")
			g, err := strconv.ParseUint(generation, 10, 4)
			if err != nil {
				return m, fmt.Errorf("key: generation %q is no number below %d", generation, mesh.Generations)
			}
			b, err := base64.StdEncoding.Strict().DecodeString(point)
			if err != nil || len(b) != 32 {
				return m, fmt.Errorf("key: %.60q is not 32 bytes in base64", point)
			}
			m.Keys = append(m.Keys, mesh.PublicKey{Generation: uint8(g), Point: [32]byte(b)})
		default:
			return m, fmt.Errorf("TXT record: %q is not known: prefixes and key are", key)
		}
	}
	return m, nil
}
