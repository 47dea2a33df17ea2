package throughput

import (
	"bytes"
	"fmt"
	"math/rand/v2"
)

// chunk is how much is written and read at a time, bytes; iperf3 has the same.
const chunk = 128 << 10

// period is that of the bytes that are sent. It is a prime, so that no
// super-segment lost, repeated or in the place of another goes unnoticed, and
// small enough that the bytes stay in the cache.
const period = 65521

// pattern has a chunk that starts at any place of the period.
var pattern = func() []byte {
	b := make([]byte, period+chunk)
	rand.NewChaCha8([32]byte{'w', 'e', 'f', 't'}).Read(b[:period])
	for i := period; i < len(b); i += period {
		copy(b[i:], b[:period])
	}
	return b
}()

// at is what the stream has after n bytes.
func at(n int64) []byte { return pattern[n%period:][:chunk] }

// probe is how many bytes are compared at either end of what a read returns.
const probe = 16

// verify compares a sample of what follows the first n bytes of the stream.
func verify(n int64, got []byte) error {
	want := at(n)[:len(got)]
	for _, i := range []int{0, max(0, len(got)-probe)} {
		end := min(i+probe, len(got))
		if !bytes.Equal(got[i:end], want[i:end]) {
			return fmt.Errorf("wrong data behind byte %d: %x, want %x", n+int64(i), got[i:end], want[i:end])
		}
	}
	return nil
}
