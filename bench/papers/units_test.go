package papers

import (
	"context"
	"errors"
	"testing"
	"time"
)

// slowly keeps a part once another unit has come on, as a disk that is slower than
// simulations.
type slowly struct {
	memory
	begun, moved chan struct{}
}

func (k slowly) Put(u Unit, p *Part) error {
	if u.Name == "first" {
		close(k.begun)
		select {
		case <-k.moved:
		case <-time.After(time.Minute):
			return errors.New("no simulation goes on while a part is written")
		}
	}
	return k.memory.Put(u, p)
}

// What keeps parts may be slow: simulations tell of their progress meanwhile.
func TestBatch_keepsWhileOthersRun(t *testing.T) {
	k := slowly{memory{}, make(chan struct{}), make(chan struct{})}
	first, other := fake(), fake()
	first.Name, other.Name = "first", "other"
	run := other.Run
	other.Run = func(ctx context.Context, o Options) (*Outcome, error) {
		<-k.begun
		o.Progress(1, 2)
		close(k.moved)
		return run(ctx, o)
	}
	told := 0
	b := Batch{Subjects: Subjects([]Experiment{first, other}), Options: Options{Seed: 1, Jobs: 2}, Keep: k, Watch: func(Progress) {}}
	err := b.Run(t.Context(), func(_ int, _ *Report, err error) {
		if told++; err != nil {
			t.Error(err)
		}
	})
	if err != nil || told != 2 || len(k.memory) != 2 {
		t.Errorf("%v; told of %d, kept %d", err, told, len(k.memory))
	}
}
