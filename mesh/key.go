package mesh

import (
	"crypto/ecdh"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"

	"weft/encap"
)

// PrivateKey is a host's half of the keys that it shares with its peers. It never leaves
// the host.
type PrivateKey struct {
	Generation uint8 // of the public half
	secret     *ecdh.PrivateKey
}

// PublicKey is the half that others may know.
type PublicKey struct {
	// Generation tells the keys of one host apart, in 4 bits. The next key has the next
	// one, modulo Generations.
	Generation uint8
	Point      [32]byte
}

// Generations is how many generations there are.
const Generations = 16

// NewPrivateKey makes a random key.
func NewPrivateKey(generation uint8) PrivateKey {
	k, err := ecdh.X25519().GenerateKey(rand.Reader)
	if err != nil {
		panic(err) // rand.Reader never fails
	}
	return PrivateKey{generation % Generations, k}
}

// ParsePrivateKey returns the key that 32 random bytes are.
func ParsePrivateKey(generation uint8, secret [32]byte) (PrivateKey, error) {
	if secret == [32]byte{} {
		return PrivateKey{}, errors.New("mesh: a private key is all zeros: give 32 random bytes")
	}
	k, err := ecdh.X25519().NewPrivateKey(secret[:])
	if err != nil {
		return PrivateKey{}, fmt.Errorf("mesh: private key: %w", err)
	}
	return PrivateKey{generation % Generations, k}, nil
}

// Secret are the bytes that ParsePrivateKey takes.
func (k PrivateKey) Secret() [32]byte { return [32]byte(k.secret.Bytes()) }

// Public returns the public half.
func (k PrivateKey) Public() PublicKey {
	return PublicKey{k.Generation, [32]byte(k.secret.PublicKey().Bytes())}
}

// String is the key in base64.
func (k PublicKey) String() string { return base64.StdEncoding.EncodeToString(k.Point[:]) }

// Agree returns the key that own, of the host named self, and a key of the host named
// other make. Both ends get the same. The secret is HKDF-SHA-256 (RFC 5869) of the X25519
// of both, for these names and these keys.
func Agree(own PrivateKey, self string, key PublicKey, other string, cipher encap.UDPCipher) (encap.UDPKey, error) {
	if self == other {
		return encap.UDPKey{}, fmt.Errorf("mesh: both ends are named %q", self)
	}
	point, err := ecdh.X25519().NewPublicKey(key.Point[:])
	if err != nil {
		return encap.UDPKey{}, fmt.Errorf("mesh: public key of %q: %w", other, err)
	}
	shared, err := own.secret.ECDH(point) // an error for points of low order
	if err != nil {
		return encap.UDPKey{}, fmt.Errorf("mesh: public key of %q: %w", other, err)
	}
	low, high := end{self, own.Public()}, end{other, key}
	if other < self {
		low, high = high, low
	}
	info := append([]byte("weft mesh 1"), byte(cipher))
	for _, e := range []end{low, high} {
		info = append(append(append(info, byte(len(e.name))), e.name...), e.key.Point[:]...)
	}
	secret, err := hkdf.Key(sha256.New, shared, nil, string(info), 32)
	if err != nil {
		return encap.UDPKey{}, fmt.Errorf("mesh: key with %q: %w", other, err)
	}
	id := low.key.Generation%Generations<<4 | high.key.Generation%Generations
	return encap.UDPKey{ID: id, Secret: [32]byte(secret), Cipher: cipher}, nil
}

// end is one of two that agree.
type end struct {
	name string
	key  PublicKey
}
