package schedulerlab

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"weft/bench/testbed"
	"weft/internal/schedulerd"
	"weft/internal/scheduling"
	"weft/internal/service"
)

// Status is the scheduler's.
func (s *Scheduled) Status(ctx context.Context) (st schedulerd.Status, err error) {
	return st, s.ask(ctx, scheduler, &st)
}

// Settle waits until the scheduler has forgotten the flows of before, which take room from
// others until then.
func (s *Scheduled) Settle(ctx context.Context) error {
	return s.await(ctx, scheduler, s.c.settles(), func() string {
		st, err := s.Status(ctx)
		switch {
		case err != nil:
			return err.Error()
		case st.Known > 0:
			return fmt.Sprintf("it knows %d flows", st.Known)
		}
		return ""
	})
}

// agent is what a weft switch says.
type agent struct {
	BalanceError string             `json:"balance_error"`
	Scheduler    *scheduling.Status `json:"scheduler"`
}

func (s *Scheduled) agent(ctx context.Context, name string) (a agent, err error) {
	return a, s.ask(ctx, name, &a)
}

// Nodes returns what each node says of scheduling, by its name: switches with weft switch, and
// those of the hosts that are scheduled.
func (s *Scheduled) Nodes(ctx context.Context, d *testbed.Daemons) (map[string]*scheduling.Status, error) {
	all := make(map[string]*scheduling.Status)
	for _, n := range s.agents {
		a, err := s.agent(ctx, n.Name)
		switch {
		case err != nil:
			return nil, fmt.Errorf("%s: %w", n.Name, err)
		case a.Scheduler == nil:
			return nil, fmt.Errorf("%s: weft switch is not scheduled", n.Name)
		}
		all[n.Name] = a.Scheduler
	}
	var wait sync.WaitGroup
	var mu sync.Mutex
	var failed error
	for _, h := range d.Hosts {
		if h.Config == "" {
			continue
		}
		wait.Go(func() { // at once, as pins expire
			var st struct{ Scheduler *scheduling.Status }
			text, err := d.Status(h)
			if err == nil {
				err = json.Unmarshal(text, &st)
			}
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err != nil:
				failed = fmt.Errorf("%s: %w", h.Name, err)
			case st.Scheduler != nil:
				all[h.Name] = st.Scheduler
			}
		})
	}
	wait.Wait()
	return all, failed
}

// ask reads a process' status.
func (s *Scheduled) ask(ctx context.Context, name string, into any) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	text, err := service.AskStatus(ctx, s.socket(name), "weft "+name)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, into)
}
