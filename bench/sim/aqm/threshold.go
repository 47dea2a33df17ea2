package aqm

// Threshold marks packets that find more than Bytes in the virtual queue, as DCTCP wants it
// (thesis §5.3.2). It drops none.
type Threshold struct {
	VirtualQueue
	Bytes int
}

// Arrive is Discipline's.
func (t *Threshold) Arrive(a Arrival) Verdict {
	found, _ := t.Put(a.Now, a.Bytes)
	if a.Capable && found > float64(t.Bytes) {
		return Mark
	}
	return Pass
}
