package backlog

import "time"

// deepest is how many bytes a bucket holds.
const deepest = 1 << 20

// buckets are leaky ones, by the number of a path.
type buckets struct {
	rate  float64 // of the host, in bytes a second
	leak  float64 // of a bucket, in bytes a nanosecond
	paths int     // among which the rate is shared
	list  []bucket
}

type bucket struct {
	bytes float64
	at    time.Duration
}

func newBuckets(rate float64) buckets {
	b := buckets{rate: rate}
	b.among(1)
	return b
}

func (b *buckets) among(paths int) {
	b.paths = paths
	b.leak = b.rate / 1e9 / float64(paths)
}

// share has the rate shared among the paths of whichever rack has most, dead
// ones included: as many as the highest number tells.
func (b *buckets) share(highest int, now time.Duration) {
	if highest = min(highest, MaxPaths-1); highest < b.paths {
		return
	}
	for i := range b.list { // until now they have leaked faster
		b.list[i] = bucket{b.left(i, now), max(now, b.list[i].at)}
	}
	b.among(highest + 1)
}

// left is how many bytes are in the bucket of a path.
func (b *buckets) left(path int, now time.Duration) float64 {
	path &= MaxPaths - 1
	if path >= len(b.list) {
		return 0
	}
	u := &b.list[path]
	return max(0, u.bytes-b.leak*float64(max(0, now-u.at)))
}

func (b *buckets) add(path, bytes int, now time.Duration) {
	path &= MaxPaths - 1
	if path >= len(b.list) {
		b.list = append(b.list, make([]bucket, path+1-len(b.list))...)
	}
	u := &b.list[path]
	*u = bucket{min(b.left(path, now)+float64(bytes), deepest), max(now, u.at)}
}
