package encap

import (
	"crypto/cipher"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"
)

const (
	nonceSize = 12 // key ID, salt, counter
	tagSize   = 16

	keyAt     = UDPOverhead
	saltAt    = keyAt + 1
	counterAt = keyAt + 4
	tagAt     = UDPOverhead + nonceSize
)

// Errors about datagrams with a MAC.
var (
	ErrUDPKey     = errors.New("encap: MAC by an unknown or removed key")
	ErrUDPForged  = errors.New("encap: wrong MAC")
	ErrUDPReplay  = errors.New("encap: datagram seen before, or too old to tell")
	ErrUDPCounter = errors.New("encap: counter used up: give the peers a new key")
)

// Sealer gives datagrams to one peer their MAC. There may be only one for a key
// and a direction at a time. It is not safe for concurrent use.
//
// GMAC's security ends when a nonce is used twice. A nonce is the counter and a salt. The
// counter starts at the time, in nanoseconds since 1970, and is incremented per datagram.
// No sender makes 10^9 datagrams a second, so after a restart it starts above all its
// former values. The receiver's window refuses what was recorded before the restart and
// needs no memory of past sessions. If the clock has been set back meanwhile, the random
// salt keeps the nonces apart. The receiver then refuses everything (ErrUDPReplay) until
// the clock has caught up and Follow has told the Sealer, or until the key is changed.
//
// The MAC says who sent a datagram. It hides nothing.
type Sealer struct {
	aead    cipher.AEAD
	id      uint8
	salt    [3]byte
	counter uint64 // the next
	tag     [tagSize]byte
}

// NewSealer returns a Sealer for the datagrams that from sends to to. Both ends
// agree on the two names, which must differ. now is the time of day; salt is from
// crypto/rand, new for every Sealer.
func NewSealer(key UDPKey, from, to string, now time.Time, salt [3]byte) (*Sealer, error) {
	aead, err := key.direction(from, to)
	if err != nil {
		return nil, err
	}
	start := now.UnixNano()
	if start <= 0 {
		return nil, fmt.Errorf("encap: the time is %v, before 1970 or after 2262: set the clock", now)
	}
	return &Sealer{aead: aead, id: key.ID, salt: salt, counter: uint64(start)}, nil
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

// Seal writes header and MAC into b[:UDPSealedOverhead], the headroom of the inner packet
// in the rest of b. Each datagram that UDP_SEGMENT cuts out of a train must be sealed by
// itself.
//
// Errors: ErrTruncated if there is no inner packet, ErrUDPCounter.
func (s *Sealer) Seal(b []byte, h UDPHeader) error {
	if len(b) <= UDPSealedOverhead {
		return ErrTruncated
	}
	if s.counter == math.MaxUint64 {
		return ErrUDPCounter
	}
	h.put((*[UDPOverhead]byte)(b), udpSealed)
	b[keyAt] = s.id
	copy(b[saltAt:counterAt], s.salt[:])
	binary.BigEndian.PutUint64(b[counterAt:], s.counter)
	s.counter++
	tag := b[tagAt:UDPSealedOverhead]
	clear(tag) // the MAC covers it as zeros, so that what it covers is in one piece
	s.aead.Seal(s.tag[:0], b[keyAt:tagAt], nil, b)
	copy(tag, s.tag[:])
	return nil
}

// Opener checks the MACs of datagrams from one peer. It accepts one key or two (SetKeys).
// It is not safe for concurrent use.
//
// It keeps its window in memory only. After a restart, old recordings can be replayed
// until the peer's next datagram arrives.
type Opener struct {
	from, to          string
	current, previous *openKey
	tag               [tagSize]byte
}

type openKey struct {
	UDPKey
	aead   cipher.AEAD
	replay replayWindow
}

// NewOpener returns an Opener for the datagrams that from sends to to: the names
// that the sender gives NewSealer, in the same order.
func NewOpener(key UDPKey, from, to string) (*Opener, error) {
	o := &Opener{from: from, to: to}
	if err := o.SetKeys(key, nil); err != nil {
		return nil, err
	}
	return o, nil
}

// SetKeys makes the Opener accept a key and, unless it is nil, a second one: the next or
// the former. It accepts no others. The numbers seen under a key that stays are remembered.
// After an error nothing has changed.
//
// To replace a key, give receivers the new one as the second, then senders, then receivers
// the new one alone. A secret that has been replaced must not come back, since the numbers
// seen under it are forgotten.
func (o *Opener) SetKeys(key UDPKey, also *UDPKey) error {
	if also != nil && also.ID == key.ID {
		return fmt.Errorf("encap: key ID %d is given twice: give each key its own", key.ID)
	}
	current, err := o.with(key)
	if err != nil {
		return err
	}
	var previous *openKey
	if also != nil {
		if previous, err = o.with(*also); err != nil {
			return err
		}
	}
	o.current, o.previous = current, previous
	return nil
}

// with returns a key with its memory, which is empty for one that is new.
func (o *Opener) with(key UDPKey) (*openKey, error) {
	for _, k := range []*openKey{o.current, o.previous} {
		if k != nil && k.UDPKey == key {
			return k, nil
		}
	}
	aead, err := key.direction(o.from, o.to)
	if err != nil {
		return nil, err
	}
	return &openKey{UDPKey: key, aead: aead}, nil
}

// Open is ParseUDP for a datagram with a MAC. It returns only packets that the peer has
// sealed, and each only once. It refuses a datagram without a MAC. Open writes to b and
// restores it before it returns.
//
// Errors: those of ParseUDP, but ErrUDPPlain instead of ErrUDPSealed; ErrUDPKey,
// ErrUDPForged, ErrUDPReplay.
func (o *Opener) Open(b []byte) (h UDPHeader, inner []byte, err error) {
	h, sealed, err := parseUDP(b)
	switch {
	case err != nil:
		return UDPHeader{}, nil, err
	case !sealed:
		return UDPHeader{}, nil, ErrUDPPlain
	case len(b) <= UDPSealedOverhead:
		return UDPHeader{}, nil, ErrTruncated
	}
	if err := o.verify(b); err != nil {
		return UDPHeader{}, nil, err
	}
	inner = b[UDPSealedOverhead:]
	if err := checkInner(inner); err != nil {
		return UDPHeader{}, nil, err
	}
	return h, inner, nil
}

// verify checks the MAC of b and that its counter is new.
func (o *Opener) verify(b []byte) error {
	key := o.current
	if key.ID != b[keyAt] {
		if key = o.previous; key == nil || key.ID != b[keyAt] {
			return ErrUDPKey
		}
	}
	tag := b[tagAt:UDPSealedOverhead]
	copy(o.tag[:], tag)
	clear(tag)
	_, err := key.aead.Open(nil, b[keyAt:tagAt], o.tag[:], b) // compares in constant time
	copy(tag, o.tag[:])
	if err != nil {
		return ErrUDPForged
	}
	if !key.replay.accept(binary.BigEndian.Uint64(b[counterAt:])) {
		return ErrUDPReplay
	}
	return nil
}
