package fabric

import (
	"fmt"
	"math"
	"strconv"
	"time"
)

// QueueLength is a length of a queue: a number of bytes, or the time in which a port sends
// them. A time means the same delay at links of any rate: 65 µs are 8,125 bytes at
// 1 Gbit/s and 81,250 at 10 Gbit/s. At most one of the two is set. The zero value is
// none.
type QueueLength struct {
	Bytes int
	Time  time.Duration
}

// At returns the length in bytes at a rate in bit/s, at least 1 unless it is none.
func (q QueueLength) At(rateBits float64) int {
	if q.Time == 0 {
		return q.Bytes
	}
	return int(max(1, math.Round(min(q.Time.Seconds()*rateBits/8, maxMeterQueue))))
}

// Check says what of the length is wrong. Zero is valid.
func (q QueueLength) Check() error {
	switch {
	case q.Bytes != 0 && q.Time != 0:
		return fmt.Errorf("is both %d bytes and %v; give one", q.Bytes, q.Time)
	case q.Bytes < 0 || q.Time < 0:
		return fmt.Errorf("is %v, must be 0 or more", q)
	}
	return nil
}

// String returns what UnmarshalText takes.
func (q QueueLength) String() string {
	if q.Time != 0 {
		return q.Time.String()
	}
	return strconv.Itoa(q.Bytes)
}

// MarshalText returns String's.
func (q QueueLength) MarshalText() ([]byte, error) { return []byte(q.String()), nil }

// UnmarshalText takes bytes, such as 30000, and times, such as 65us.
func (q *QueueLength) UnmarshalText(text []byte) (err error) {
	if q.Bytes, err = strconv.Atoi(string(text)); err == nil {
		q.Time = 0
		return nil
	}
	q.Bytes = 0
	if q.Time, err = time.ParseDuration(string(text)); err != nil {
		return fmt.Errorf("%q is neither bytes, such as 30000, nor a time, such as 65us", text)
	}
	return nil
}
