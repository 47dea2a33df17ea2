package encap

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"
)

const (
	nonceSize = 12 // key ID, salt, counter
	tagSize   = 16
	pairSize  = 4

	keyAt     = UDPOverhead
	saltAt    = keyAt + 1
	counterAt = keyAt + 4
	tagAt     = UDPOverhead + nonceSize
	pairAt    = tagAt + tagSize
)

// Errors about datagrams with a MAC.
var (
	ErrUDPKey     = errors.New("encap: MAC by an unknown or removed key")
	ErrUDPForged  = errors.New("encap: wrong MAC")
	ErrUDPReplay  = errors.New("encap: datagram seen before, or too old to tell")
	ErrUDPCounter = errors.New("encap: counter used up: give the peers a new key")
	ErrUDPCipher  = errors.New("encap: datagram is encrypted and its key is for a MAC, or the other way round")
)

// Sealer gives datagrams to one peer their MAC, and encrypts their inner packets if the
// key's Cipher does. There may be only one for a key and a direction at a time. It is not
// safe for concurrent use.
//
// The security of all ciphers ends when a nonce is used twice. A nonce is the counter and a salt. The
// counter starts at the time, in nanoseconds since 1970, and is incremented per datagram.
// No sender makes 10^9 datagrams a second, so after a restart it starts above all its
// former values. The receiver's window refuses what was recorded before the restart and
// needs no memory of past sessions. If the clock has been set back meanwhile, the random
// salt keeps the nonces apart. The receiver then refuses everything (ErrUDPReplay) until
// the clock has caught up and Follow has told the Sealer, or until the key is changed.
//
// The header is never encrypted: path, flowcell, packet number and feedback. Nor are
// lengths hidden.
type Sealer struct {
	udpDirection
	cipher  UDPCipher
	id      uint8
	salt    [3]byte
	counter uint64 // the next
	tag     [tagSize]byte
	scratch []byte // see udpDirection.seal
}

// NewSealer returns a Sealer for the datagrams that from sends to to. Both ends
// agree on the two names, which must differ. now is the time of day; salt is from
// crypto/rand, new for every Sealer.
func NewSealer(key UDPKey, from, to string, now time.Time, salt [3]byte) (*Sealer, error) {
	direction, err := key.direction(from, to)
	if err != nil {
		return nil, err
	}
	start := now.UnixNano()
	if start <= 0 {
		return nil, fmt.Errorf("encap: the time is %v, before 1970 or after 2262: set the clock", now)
	}
	return &Sealer{udpDirection: direction, cipher: key.Cipher, id: key.ID, salt: salt, counter: uint64(start)}, nil
}

// Follow makes later datagrams count from the time of day if that is above the counter.
// Call it when a clock that was behind at the start has been corrected. A clock that was
// set back changes nothing. Do not call it as time passes: datagrams in flight would
// become too old for the receiver's window.
func (s *Sealer) Follow(now time.Time) {
	if t := now.UnixNano(); t > 0 && uint64(t) > s.counter {
		s.counter = uint64(t)
	}
}

// Overhead is how many bytes Seal writes before the inner packet.
func (s *Sealer) Overhead() int { return s.cipher.Overhead() }

// Seal writes header and MAC into the first Overhead bytes of b, the headroom of the
// inner packet in the rest of b, which it encrypts if the key's Cipher does. Each
// datagram that UDP_SEGMENT cuts out of a train must be sealed by itself. Bytes between
// the length of b and its capacity are changed and restored.
//
// Errors: ErrTruncated if there is no inner packet, ErrUDPCounter.
func (s *Sealer) Seal(b []byte, h UDPHeader) error {
	if len(b) <= s.Overhead() {
		return ErrTruncated
	}
	if s.counter == math.MaxUint64 {
		return ErrUDPCounter
	}
	form := byte(udpSealed)
	if s.cipher.Hides() {
		form |= udpHidden
	}
	h.put((*[UDPOverhead]byte)(b), form)
	b[keyAt] = s.id
	copy(b[saltAt:counterAt], s.salt[:])
	binary.BigEndian.PutUint64(b[counterAt:], s.counter)
	s.counter++
	tag := b[tagAt:UDPSealedOverhead]
	if s.cipher.Hides() {
		binary.BigEndian.PutUint32(b[pairAt:], s.pair)
		s.seal(b[keyAt:tagAt], b[UDPHiddenOverhead:], b[:UDPOverhead], tag, &s.scratch)
		return nil
	}
	clear(tag) // the MAC covers it as zeros, so that what it covers is in one piece
	s.aead.Seal(s.tag[:0], b[keyAt:tagAt], nil, b)
	copy(tag, s.tag[:])
	return nil
}

// Opener checks the MACs of datagrams from one peer, and decrypts what is encrypted. It
// accepts one key or several (SetKeys). It is not safe for concurrent use.
//
// It keeps its window in memory only. After a restart, what somebody has recorded can be
// replayed once: anything until the peer's next datagram arrives, and then what the peer has
// sent in the 8,128 datagrams before that one.
type Opener struct {
	from, to string
	keys     []*openKey // the one in use first
	tag      [tagSize]byte
	scratch  []byte // see udpDirection.open
}

type openKey struct {
	UDPKey
	udpDirection
	replay replayWindow
}

// MaxUDPKeys is how many keys an Opener accepts at most: two of each end.
const MaxUDPKeys = 4

// NewOpener returns an Opener for the datagrams that from sends to to: the names
// that the sender gives NewSealer, in the same order.
func NewOpener(key UDPKey, from, to string) (*Opener, error) {
	o := &Opener{from: from, to: to}
	if err := o.SetKeys(key); err != nil {
		return nil, err
	}
	return o, nil
}

// SetKeys makes the Opener accept a key and, besides, others: the next or the former ones.
// The IDs of all must differ, and there may be MaxUDPKeys. It accepts no others. The numbers
// seen under a key that stays are remembered. After an error nothing has changed.
//
// To replace a key, give receivers the new one as a second, then senders, then receivers
// the new one alone. A secret that has been replaced must not come back, since the numbers
// seen under it are forgotten.
func (o *Opener) SetKeys(key UDPKey, also ...UDPKey) error {
	if n := 1 + len(also); n > MaxUDPKeys {
		return fmt.Errorf("encap: %d keys are given for one peer: give %d at most", n, MaxUDPKeys)
	}
	keys := make([]*openKey, 0, 1+len(also))
	for _, k := range append([]UDPKey{key}, also...) {
		if slices.ContainsFunc(keys, func(other *openKey) bool { return other.ID == k.ID }) {
			return fmt.Errorf("encap: key ID %d is given twice: give each key its own", k.ID)
		}
		with, err := o.with(k)
		if err != nil {
			return err
		}
		keys = append(keys, with)
	}
	o.keys = keys
	return nil
}

// with returns a key with its memory, which is empty for one that is new.
func (o *Opener) with(key UDPKey) (*openKey, error) {
	for _, k := range o.keys {
		if k.UDPKey == key {
			return k, nil
		}
	}
	direction, err := key.direction(o.from, o.to)
	if err != nil {
		return nil, err
	}
	return &openKey{UDPKey: key, udpDirection: direction}, nil
}

// byID returns the key with an ID; nil if there is none.
func (o *Opener) byID(id uint8) *openKey {
	for _, k := range o.keys {
		if k.ID == id {
			return k
		}
	}
	return nil
}

// Open is ParseUDP for a datagram with a MAC. It returns only packets that the peer has
// sealed, and each only once. It refuses a datagram without a MAC, and one that is not
// encrypted by a key that encrypts. It decrypts in place; what is in b after an error is
// undetermined. Without encryption, Open writes to b and restores it before it returns.
// Bytes between the length of b and its capacity are changed and restored.
//
// Errors: those of ParseUDP, but ErrUDPPlain instead of ErrUDPSealed; ErrUDPKey,
// ErrUDPCipher, ErrUDPForged, ErrUDPReplay.
func (o *Opener) Open(b []byte) (h UDPHeader, inner []byte, err error) {
	h, form, err := parseUDP(b)
	switch {
	case err != nil:
		return UDPHeader{}, nil, err
	case form == 0:
		return UDPHeader{}, nil, ErrUDPPlain
	case len(b) <= UDPSealedOverhead || form&udpHidden != 0 && len(b) <= UDPHiddenOverhead:
		return UDPHeader{}, nil, ErrTruncated
	}
	key := o.byID(b[keyAt])
	if key == nil {
		return UDPHeader{}, nil, ErrUDPKey
	}
	if key.Cipher.Hides() != (form&udpHidden != 0) {
		return UDPHeader{}, nil, ErrUDPCipher
	}
	counter := binary.BigEndian.Uint64(b[counterAt:])
	if !o.verify(key, b) {
		return UDPHeader{}, nil, ErrUDPForged
	}
	if !key.replay.accept(counter) {
		return UDPHeader{}, nil, ErrUDPReplay
	}
	inner = b[key.Cipher.Overhead():]
	if err := checkInner(inner); err != nil {
		return UDPHeader{}, nil, err
	}
	return h, inner, nil
}

// verify checks the MAC of b, and decrypts its inner packet.
func (o *Opener) verify(key *openKey, b []byte) bool {
	tag := b[tagAt:UDPSealedOverhead]
	if key.Cipher.Hides() {
		return binary.BigEndian.Uint32(b[pairAt:]) == key.pair &&
			key.open(b[keyAt:tagAt], b[UDPHiddenOverhead:], b[:UDPOverhead], tag, &o.scratch)
	}
	copy(o.tag[:], tag)
	clear(tag)
	_, err := key.aead.Open(nil, b[keyAt:tagAt], o.tag[:], b) // compares in constant time
	copy(tag, o.tag[:])
	return err == nil
}
