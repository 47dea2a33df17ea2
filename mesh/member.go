package mesh

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Member is a host's registration.
type Member struct {
	Name string `json:"name"`
	// Endpoints are where the host receives. Of several, peers take the first of their
	// own family.
	Endpoints []netip.AddrPort `json:"endpoints"`
	// Prefixes are what is behind the host.
	Prefixes []netip.Prefix `json:"prefixes"`
	// Keys are the host's: the one in use, and one more that it accepts at most. Without
	// any, nothing between this host and others is authenticated.
	Keys []PublicKey `json:"keys,omitempty"`
	// Seen is the greatest Revision that the host knows of registrations that replace a key.
	Seen int64 `json:"seen,omitempty"`
	// Identity is whose registration it is, and Signature proves that: see Sign. A host that
	// keeps no identity has neither.
	Identity  PublicIdentity `json:"identity,omitzero"`
	Signature []byte         `json:"signature,omitempty"`
	// Serial grows with each registration that the identity signs: a former one does not count any
	// more where a later one has been seen. 0 without a signature.
	Serial int64 `json:"serial,omitempty"`

	// Revision is the directory's number for this registration: a later one is greater.
	// Since is that of the first registration of those that have followed each other
	// without the name being free between. They are no part of what is registered.
	Revision int64 `json:"-"`
	Since    int64 `json:"-"`
}

// Bounds of a registration.
const (
	MaxName      = 255
	MaxEndpoints = 8
	MaxPrefixes  = 256
	MaxKeys      = 2
	MaxBytes     = 32 << 10 // encoded
)

// Encode returns the registration as JSON. It is an error if Decode would refuse it.
func (m *Member) Encode() ([]byte, error) {
	if err := m.check(); err != nil {
		return nil, err
	}
	return json.Marshal(m)
}

// Decode reads a registration. What it does not know it leaves out: a later release may say more of
// a host. It refuses what is unbounded, contradicts itself or has a wrong signature, and keeps nothing
// of b.
func Decode(b []byte) (m Member, err error) { return decode(b, false) }

// DecodeStrict is Decode for what people write: it refuses what it does not know.
func DecodeStrict(b []byte) (m Member, err error) { return decode(b, true) }

func decode(b []byte, strict bool) (m Member, err error) {
	if len(b) > MaxBytes {
		return Member{}, fmt.Errorf("mesh: a registration has %d bytes: it may have %d", len(b), MaxBytes)
	}
	d := json.NewDecoder(bytes.NewReader(b))
	if strict {
		d.DisallowUnknownFields()
	}
	if err := d.Decode(&m); err != nil {
		return Member{}, fmt.Errorf("mesh: a registration: %w", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return Member{}, errors.New("mesh: a registration has something behind it")
	}
	if len(m.Keys) == 0 {
		m.Keys = nil
	}
	if len(m.Signature) == 0 {
		m.Signature = nil
	}
	if err := m.check(); err != nil {
		return Member{}, err
	}
	return m, m.checkSignature(b)
}

func (m *Member) check() error {
	switch {
	case m.Name == "" || len(m.Name) > MaxName:
		return fmt.Errorf("mesh: name %q: must have 1 to %d bytes", m.Name[:min(len(m.Name), 40)], MaxName)
	case !utf8.ValidString(m.Name) || strings.ContainsFunc(m.Name, unicode.IsControl):
		return fmt.Errorf("mesh: name %q: must be text without control characters", m.Name)
	case len(m.Endpoints) == 0 || len(m.Endpoints) > MaxEndpoints:
		return fmt.Errorf("mesh: %q has %d endpoints: must have 1 to %d", m.Name, len(m.Endpoints), MaxEndpoints)
	case len(m.Prefixes) == 0 || len(m.Prefixes) > MaxPrefixes:
		return fmt.Errorf("mesh: %q has %d prefixes: must have 1 to %d", m.Name, len(m.Prefixes), MaxPrefixes)
	case len(m.Keys) > MaxKeys:
		return fmt.Errorf("mesh: %q has %d keys: may have %d", m.Name, len(m.Keys), MaxKeys)
	case m.Serial < 0 || m.Serial > 0 && m.Identity == (PublicIdentity{}):
		return fmt.Errorf("mesh: %q has serial %d: it must not be below 0, and needs an identity", m.Name, m.Serial)
	case m.Seen < 0:
		return fmt.Errorf("mesh: %q has seen %d: must not be below 0", m.Name, m.Seen)
	}
	for _, e := range m.Endpoints {
		if a := e.Addr(); !e.IsValid() || e.Port() == 0 || a.IsUnspecified() || a.IsMulticast() || a.Zone() != "" {
			return fmt.Errorf("mesh: %q: endpoint %v is no address of a host with a port", m.Name, e)
		}
	}
	for i, p := range m.Prefixes {
		if !p.IsValid() || p != p.Masked() || p.Addr().Is4In6() {
			return fmt.Errorf("mesh: %q: prefix %v is no prefix without bits behind its length", m.Name, p)
		}
		if a := p.Addr(); p.Bits() == 0 || a.IsLoopback() || a.IsMulticast() || a.IsLinkLocalUnicast() {
			return fmt.Errorf("mesh: %q: prefix %v is nobody's: all addresses, loopback, multicast and link-local ones are not to be registered", m.Name, p)
		}
		for _, q := range m.Prefixes[:i] {
			if p.Overlaps(q) {
				return fmt.Errorf("mesh: %q: prefixes %v and %v overlap", m.Name, q, p)
			}
		}
	}
	for i, k := range m.Keys {
		if k.Generation >= Generations || k.Point == [32]byte{} {
			return fmt.Errorf("mesh: %q: key %d is not one: generations are below %d, and a key is not 0", m.Name, i, Generations)
		}
		if i > 0 && k.Generation == m.Keys[0].Generation {
			return fmt.Errorf("mesh: %q: both keys are of generation %d", m.Name, k.Generation)
		}
	}
	return nil
}

// publicKey is a PublicKey in JSON.
type publicKey struct {
	Generation uint8  `json:"generation"`
	Key        string `json:"key"` // base64
}

// MarshalJSON writes generation and key, in base64.
func (k PublicKey) MarshalJSON() ([]byte, error) {
	return json.Marshal(publicKey{k.Generation, k.String()})
}

// UnmarshalJSON reads what MarshalJSON writes.
func (k *PublicKey) UnmarshalJSON(b []byte) error {
	var p publicKey
	if err := json.Unmarshal(b, &p); err != nil {
		return err
	}
	point, err := base64.StdEncoding.Strict().DecodeString(p.Key)
	if err != nil || len(point) != len(k.Point) {
		return fmt.Errorf("key %.60q is not %d bytes in base64", p.Key, len(k.Point))
	}
	k.Generation, k.Point = p.Generation, [32]byte(point)
	return nil
}
