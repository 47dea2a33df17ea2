package topoupdate

import (
	"crypto/hmac"
	"crypto/sha256"
	"fmt"
	"hash"
	"time"
)

const (
	macSize = sha256.Size
	// maxKeys bounds the keys that are tried and kept: one in use, one to come, and
	// some left over in a configuration.
	maxKeys = 8
	// minSecret is half of SHA-256's output, which RFC 2104 (§3) has as the least.
	minSecret = 16
)

// Key is a secret that all switches and hosts of a fabric share.
type Key struct {
	ID     uint8  // 1 to 255; travels in the message
	Secret []byte // at least 16 bytes, uniformly random, not a passphrase
	// From is when to begin to sign with the key, on the clock of the machine's now. The
	// key is accepted at once. So give everybody a new key whose From is after everybody
	// has it, and remove the old key some time later.
	From time.Duration
}

// Keys authenticate messages by HMAC-SHA-256 (RFC 2104). The zero value has none: nothing
// is signed, nothing checked.
type Keys struct {
	List []Key
	// AcceptUnsigned also accepts messages without a MAC, while some nodes have no key
	// yet. A receiver without keys accepts signed messages unchecked.
	AcceptUnsigned bool
}

// Validate reports the first key that is wrong, or too many of them.
func (k *Keys) Validate() error {
	if len(k.List) > maxKeys {
		return fmt.Errorf("Keys: %d keys, at most %d: take away those that nobody signs with any more", len(k.List), maxKeys)
	}
	for i, key := range k.List {
		switch {
		case key.ID == 0:
			return fmt.Errorf("Keys.List[%d].ID is 0, which stands for no key: number keys from 1 to 255", i)
		case len(key.Secret) < minSecret:
			return fmt.Errorf("Keys.List[%d].Secret has %d bytes: give at least %d random ones", i, len(key.Secret), minSecret)
		}
		for _, other := range k.List[:i] {
			if other.ID == key.ID {
				return fmt.Errorf("Keys.List[%d].ID: %d is in the list twice: give each key its own number", i, key.ID)
			}
		}
	}
	return nil
}

// Keyring signs and verifies messages whose header has at least 48 bytes, the key's number
// in byte 4 and the protocol's own magic before it. Package hedera/wire shares it. It is
// not safe for concurrent use.
type Keyring struct {
	acceptUnsigned bool
	keys           []ringKey
	sum            [macSize]byte
}

type ringKey struct {
	id   uint8
	from time.Duration
	mac  hash.Hash
}

// NewKeyring validates keys. It keeps no reference to the secrets.
func NewKeyring(k Keys) (*Keyring, error) {
	if err := k.Validate(); err != nil {
		return nil, err
	}
	r := &Keyring{acceptUnsigned: k.AcceptUnsigned}
	for _, key := range k.List {
		r.keys = append(r.keys, ringKey{key.ID, key.From, hmac.New(sha256.New, key.Secret)})
	}
	return r, nil
}

// Overhead returns how many bytes sign adds.
func (r *Keyring) Overhead() int {
	if len(r.keys) == 0 {
		return 0
	}
	return macSize
}

// Sign names the newest key whose time has come in a message, and appends the
// MAC. Before the time of them all it is the first one's.
func (r *Keyring) Sign(b []byte, now time.Duration) []byte {
	if len(r.keys) == 0 {
		return b
	}
	best := &r.keys[0]
	for i := range r.keys[1:] {
		if k := &r.keys[i+1]; newer(k.from, best.from, now) {
			best = k
		}
	}
	b[atKey] = best.id
	best.mac.Reset()
	best.mac.Write(b)
	return best.mac.Sum(b)
}

// newer reports whether a key that signs from a time on is to sign now rather than another,
// which is before it in the list.
func newer(from, other, now time.Duration) bool {
	due := from <= now
	return due && (from >= other || other > now) || !due && other > now && from < other
}

// Signing returns the key to sign with at the time now: the newest whose time has come, before
// that of them all the first one. It is false if there is none.
func (k *Keys) Signing(now time.Duration) (best Key, ok bool) {
	for i, key := range k.List {
		if i == 0 || newer(key.From, best.From, now) {
			best = key
		}
	}
	return best, len(k.List) > 0
}

// Signs reports whether a message of at least headerSize bytes claims to be signed
// where signatures mean something.
func (r *Keyring) Signs(b []byte) bool { return len(r.keys) > 0 && b[atKey] != 0 }

// Verify checks a message of at least headerSize bytes and returns it without
// its MAC.
//
// Errors: RejectKey, RejectMAC, RejectTruncated.
func (r *Keyring) Verify(b []byte) ([]byte, error) {
	id := b[atKey]
	if id == 0 {
		if len(r.keys) > 0 && !r.acceptUnsigned {
			return nil, RejectKey
		}
		return b, nil
	}
	end := len(b) - macSize
	if end < headerSize {
		return nil, RejectTruncated
	}
	if len(r.keys) == 0 {
		return b[:end], nil
	}
	for i := range r.keys {
		k := &r.keys[i]
		if k.id != id {
			continue
		}
		k.mac.Reset()
		k.mac.Write(b[:end])
		if !hmac.Equal(k.mac.Sum(r.sum[:0]), b[end:]) {
			return nil, RejectMAC
		}
		return b[:end], nil
	}
	return nil, RejectKey
}
