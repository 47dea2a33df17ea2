package mesh

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// Identity is who a host is, whatever keys it has: an Ed25519 key (RFC 8032), by which it signs
// its registrations. It never leaves the host. The zero value is none.
type Identity struct{ private ed25519.PrivateKey }

// PublicIdentity is the half that others know a host by. The zero value is none.
type PublicIdentity [32]byte

// NewIdentity makes a random one.
func NewIdentity() Identity {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		panic(err) // rand.Reader never fails
	}
	return Identity{private}
}

// ParseIdentity returns the identity that 32 random bytes are.
func ParseIdentity(seed [32]byte) (Identity, error) {
	if seed == [32]byte{} {
		return Identity{}, errors.New("mesh: an identity is all zeros: give 32 random bytes")
	}
	return Identity{ed25519.NewKeyFromSeed(seed[:])}, nil
}

// Seed are the bytes that ParseIdentity takes.
func (i Identity) Seed() [32]byte { return [32]byte(i.private.Seed()) }

// IsZero reports whether it is none.
func (i Identity) IsZero() bool { return i.private == nil }

// Public returns the public half.
func (i Identity) Public() (p PublicIdentity) {
	if i.private != nil {
		p = PublicIdentity(i.private.Public().(ed25519.PublicKey))
	}
	return p
}

// String is the identity in base64.
func (p PublicIdentity) String() string { return base64.StdEncoding.EncodeToString(p[:]) }

// MarshalText is String.
func (p PublicIdentity) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText reads what String returns.
func (p *PublicIdentity) UnmarshalText(text []byte) error {
	b, err := base64.StdEncoding.Strict().DecodeString(string(text))
	if err != nil || len(b) != len(p) {
		return fmt.Errorf("identity %.60q is not %d bytes in base64", text, len(p))
	}
	*p = PublicIdentity(b)
	return nil
}

// Sign makes the registration the identity's. All else of it must be complete.
func (m *Member) Sign(i Identity) error {
	m.Identity, m.Signature = i.Public(), nil
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	m.Signature = ed25519.Sign(i.private, append([]byte(signedHead), text...))
	return nil
}

// signedHead is before what is signed: the registration as it is encoded without its signature, with
// what others may not know of it.
const signedHead = "weft mesh registration 1\n"

// checkSignature checks that the registration that b is encoded is its identity's, if it has one.
func (m *Member) checkSignature(b []byte) error {
	switch none := m.Identity == (PublicIdentity{}); {
	case none && m.Signature == nil:
		return nil
	case none:
		return fmt.Errorf("mesh: %q: it has a signature, and no identity", m.Name)
	}
	text, err := unsigned(b)
	if err != nil {
		return err
	}
	if !ed25519.Verify(m.Identity[:], append([]byte(signedHead), text...), m.Signature) {
		return fmt.Errorf("mesh: %q: its signature is not that of identity %v", m.Name, m.Identity)
	}
	return nil
}

// unsigned returns a registration without its signature, and all else of it byte by byte.
func unsigned(b []byte) ([]byte, error) {
	d := json.NewDecoder(bytes.NewReader(b))
	if _, err := d.Token(); err != nil {
		return nil, err
	}
	var fields [][]byte
	for d.More() {
		from := d.InputOffset()
		name, err := d.Token()
		if err != nil {
			return nil, err
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return nil, err
		}
		if name != "signature" {
			fields = append(fields, bytes.TrimLeft(b[from:d.InputOffset()], ", \t\r\n"))
		}
	}
	return slices.Concat([]byte("{"), bytes.Join(fields, []byte(",")), []byte("}")), nil
}
