package live

import (
	"slices"
	"time"
)

// The bounds of a Ring that says nothing else.
const (
	KeepFor    = 10 * time.Minute
	KeepBytes  = 64 << 20
	KeepFrames = 1 << 13
)

// Ring keeps the latest frames, all of one Fabric. The zero value keeps them for KeepFor, in
// KeepBytes. It is not safe for concurrent use.
type Ring struct {
	For   time.Duration
	Bytes int // about: as Frame.size counts

	frames  []*Frame // oldest first
	bytes   int
	evicted uint64
}

// Add keeps a frame, which is newer than the others, and evicts those that are too old or for
// which there is no room. One of another Fabric evicts all before it.
func (r *Ring) Add(f *Frame) {
	keep, bytes := r.For, r.Bytes
	if keep == 0 {
		keep = KeepFor
	}
	if bytes == 0 {
		bytes = KeepBytes
	}
	r.frames = append(r.frames, f)
	r.bytes += f.size()
	n := 0
	for ; n < len(r.frames)-1; n++ {
		o := r.frames[n]
		old := f.At.Sub(o.At) > keep
		if !old && o.Fabric == f.Fabric && r.bytes <= bytes && len(r.frames)-n <= KeepFrames {
			break
		}
		r.bytes -= o.size()
		r.frames[n] = nil
		if !old {
			r.evicted++
		}
	}
	r.frames = slices.Delete(r.frames, 0, n)
}

// Evicted counts frames that were younger than For and had to go.
func (r *Ring) Evicted() uint64 { return r.evicted }

// Len returns the number of frames.
func (r *Ring) Len() int { return len(r.frames) }

// Frames returns all frames, oldest first. The slice is the ring's until Add.
func (r *Ring) Frames() []*Frame { return r.frames }

// Latest returns the newest frame; nil: there is none.
func (r *Ring) Latest() *Frame {
	if len(r.frames) == 0 {
		return nil
	}
	return r.frames[len(r.frames)-1]
}

// Frame returns the frame with a number; nil: it is no more, or not yet.
func (r *Ring) Frame(seq uint64) *Frame {
	i, ok := slices.BinarySearchFunc(r.frames, seq, func(f *Frame, s uint64) int {
		switch {
		case f.Seq < s:
			return -1
		case f.Seq > s:
			return 1
		}
		return 0
	})
	if !ok {
		return nil
	}
	return r.frames[i]
}

// At returns the latest frame that is not younger than t, or else the oldest; nil: there is none.
func (r *Ring) At(t time.Time) *Frame {
	if len(r.frames) == 0 {
		return nil
	}
	i, ok := slices.BinarySearchFunc(r.frames, t, func(f *Frame, t time.Time) int { return f.At.Compare(t) })
	if !ok {
		i--
	}
	return r.frames[max(0, i)]
}

// Summaries returns those of all frames, oldest first.
func (r *Ring) Summaries() []Summary {
	all := make([]Summary, len(r.frames))
	for i, f := range r.frames {
		all[i] = f.Summary()
	}
	return all
}

// size is about how many bytes the frame takes, with the strings that are its own.
func (f *Frame) size() int {
	const frame, link, conn, way, other = 400, 104, 300, 200, 120
	n := frame + len(f.Links)*link + len(f.Conns)*conn + len(f.Ways)*way + (len(f.Hosts)+len(f.Suspects)+len(f.Failures)+len(f.Events))*other + len(f.Trouble)
	for _, w := range f.Ways {
		n += len(w.Why)
	}
	for _, h := range f.Hosts {
		n += len(h.Name) + len(h.Verdict) + len(h.Why) + len(h.About)
	}
	for _, s := range f.Suspects {
		n += len(s.Why)
		for _, p := range s.Places {
			n += 16 + len(p)
		}
	}
	for _, e := range f.Events {
		n += len(e.What) + len(e.Text)
	}
	return n
}
