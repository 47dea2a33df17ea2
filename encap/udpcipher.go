package encap

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"

	"golang.org/x/crypto/chacha20poly1305"
)

// UDPCipher is what a key does to the datagrams of a tunnel. Both ends must have the same.
type UDPCipher uint8

// The ciphers. All of them say who has sent a datagram, and refuse it a second time.
const (
	// UDPGMAC hides nothing. It is the zero value.
	UDPGMAC UDPCipher = iota
	// UDPAESGCM hides the inner packet (AES-256-GCM, NIST SP 800-38D). It is the fastest
	// where AES is in hardware: amd64, arm64, s390x, ppc64le.
	UDPAESGCM
	// UDPChaCha20Poly1305 hides it, too (RFC 8439), and is the faster one elsewhere.
	UDPChaCha20Poly1305

	udpCiphers
)

var udpCipherNames = [udpCiphers]string{"gmac", "aes-gcm", "chacha20poly1305"}

// String is the cipher's name in configurations.
func (c UDPCipher) String() string {
	if c < udpCiphers {
		return udpCipherNames[c]
	}
	return fmt.Sprintf("cipher %d", uint8(c))
}

// MarshalText is String.
func (c UDPCipher) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalText reads a name.
func (c *UDPCipher) UnmarshalText(text []byte) error {
	for i, name := range udpCipherNames {
		if string(text) == name {
			*c = UDPCipher(i)
			return nil
		}
	}
	return fmt.Errorf("encap: cipher %q is not known: gmac, aes-gcm and chacha20poly1305 are", text)
}

// Hides reports whether the inner packet is encrypted.
func (c UDPCipher) Hides() bool { return c != UDPGMAC }

// Overhead is how many bytes stand before the inner packet.
func (c UDPCipher) Overhead() int {
	if c.Hides() {
		return UDPHiddenOverhead
	}
	return UDPSealedOverhead
}

// aead returns the cipher with a key of 32 bytes.
func (c UDPCipher) aead(key []byte) (cipher.AEAD, error) {
	if c == UDPChaCha20Poly1305 {
		return chacha20poly1305.New(key)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

// udpDirection is a key's part for the datagrams from one end to the other.
type udpDirection struct {
	aead cipher.AEAD
	pair uint32 // see UDPPair; 0 if the inner packet is not hidden
}

// direction returns a key's part for one direction.
//
// GMAC is GCM of no plaintext, with the whole datagram as additional data.
//
// The key is HKDF-SHA-256 (RFC 5869) of the secret for this cipher, this sender and this
// receiver. So a datagram that is sent back to its sender does not verify there, and
// neither two directions nor two ciphers ever share a nonce.
func (k *UDPKey) direction(from, to string) (d udpDirection, err error) {
	switch {
	case from == to:
		return d, fmt.Errorf("encap: both ends of the key are named %q: each needs a name of its own, the same at both ends", from)
	case k.Secret == [32]byte{}:
		return d, fmt.Errorf("encap: Secret of key %d is all zeros: give 32 random bytes", k.ID)
	case len(from) > 255 || len(to) > 255:
		return d, errors.New("encap: name of an end is longer than 255 bytes")
	case k.Cipher >= udpCiphers:
		return d, fmt.Errorf("encap: Cipher of key %d is %v, which is not known", k.ID, k.Cipher)
	}
	info := "weft udp 1"
	if k.Cipher.Hides() {
		info = "weft hidden udp 1 " + k.Cipher.String()
	}
	info += string([]byte{byte(len(from))}) + from + to
	key, err := hkdf.Key(sha256.New, k.Secret[:], nil, info, 32)
	if err != nil {
		return d, fmt.Errorf("encap: derive key %d: %w", k.ID, err)
	}
	if d.aead, err = k.Cipher.aead(key); err != nil || !k.Cipher.Hides() {
		return d, err
	}
	d.pair, err = k.pairOf(info)
	return d, err
}

// Pair is UDPPair of the datagrams that from sends to to with this key; 0 if the cipher
// hides nothing.
func (k *UDPKey) Pair(from, to string) (uint32, error) {
	d, err := k.direction(from, to)
	return d.pair, err
}

func (k *UDPKey) pairOf(info string) (uint32, error) {
	b, err := hkdf.Key(sha256.New, k.Secret[:], nil, "pair of "+info, 4)
	if err != nil {
		return 0, fmt.Errorf("encap: derive key %d: %w", k.ID, err)
	}
	return binary.BigEndian.Uint32(b), nil
}

// UDPPair returns the number that an unchecked datagram with a hidden inner packet has for
// its sender, receiver and key, to find the key to try. It returns false for any other
// datagram. The number follows from the key, so both ends know it, and nobody else can
// tell whose it is. Two pairs may have the same number by chance.
func UDPPair(b []byte) (uint32, bool) {
	if len(b) < UDPHiddenOverhead || b[0]&udpHidden == 0 {
		return 0, false
	}
	return binary.BigEndian.Uint32(b[pairAt:]), true
}

// seal encrypts b in place. The tag, which Go's library puts behind, goes to tag. The
// bytes behind b are changed meanwhile: nobody else may use them at that time.
//
// Where there is no room for a tag behind b, all is done in s, which grows to that size.
func (d *udpDirection) seal(nonce, b, additional, tag []byte, s *[]byte) {
	if n := len(b); cap(b) >= n+tagSize {
		behind := b[n : n+tagSize]
		var kept [tagSize]byte
		copy(kept[:], behind)
		d.aead.Seal(b[:0], nonce, b, additional)
		copy(tag, behind)
		copy(behind, kept[:])
		return
	}
	out := d.aead.Seal((*s)[:0], nonce, b, additional)
	*s = out[:0]
	copy(tag, out[copy(b, out):])
}

// open decrypts b in place, whose tag is elsewhere. What is in b after false is
// undetermined.
func (d *udpDirection) open(nonce, b, additional, tag []byte, s *[]byte) bool {
	if n := len(b); cap(b) >= n+tagSize {
		behind := b[n : n+tagSize]
		var kept [tagSize]byte
		copy(kept[:], behind)
		copy(behind, tag)
		_, err := d.aead.Open(b[:0], nonce, b[:n+tagSize], additional)
		copy(behind, kept[:])
		return err == nil
	}
	in := append(append((*s)[:0], b...), tag...)
	*s = in[:0]
	out, err := d.aead.Open(in[:0], nonce, in, additional)
	copy(b, out)
	return err == nil
}
