package encap

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"errors"
	"fmt"
)

// UDPKey is a key that two peers share. Its ID travels in the datagram, so that a
// receiver knows which of two keys to try during a change of keys.
type UDPKey struct {
	ID     uint8
	Secret [32]byte // uniformly random, not a passphrase
}

// direction returns the GMAC of one direction: GCM (NIST SP 800-38D) of no plaintext,
// with the whole datagram as additional data. It is the fastest MAC of Go's library where
// AES is in hardware (amd64, arm64, s390x, ppc64le); elsewhere it runs in constant time,
// but slowly.
//
// The key is HKDF-SHA-256 (RFC 5869) of the secret for this sender and this receiver. So
// a datagram that is sent back to its sender does not verify there, and the two
// directions never share a nonce.
func (k *UDPKey) direction(from, to string) (cipher.AEAD, error) {
	switch {
	case from == to:
		return nil, fmt.Errorf("encap: both ends of the key are named %q: each needs a name of its own, the same at both ends", from)
	case k.Secret == [32]byte{}:
		return nil, fmt.Errorf("encap: Secret of key %d is all zeros: give 32 random bytes", k.ID)
	case len(from) > 255 || len(to) > 255:
		return nil, errors.New("encap: name of an end is longer than 255 bytes")
	}
	info := "weft udp 1" + string([]byte{byte(len(from))}) + from + to
	key, err := hkdf.Key(sha256.New, k.Secret[:], nil, info, 32)
	if err != nil {
		return nil, fmt.Errorf("encap: derive key %d: %w", k.ID, err)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}
