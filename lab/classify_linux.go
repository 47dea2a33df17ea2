package lab

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"weft/fabric"
	"weft/topology"
)

// classifierGlance is how often it is looked whether it is time to rearrange.
const classifierGlance = 100 * time.Millisecond

// Classifiers are the flow classifiers of a lab's switches that have ports up, one each.
// Methods are safe for concurrent use.
type Classifiers struct {
	lab  *Lab
	all  map[topology.NodeID]*fabric.Classifier
	done chan struct{}
	work sync.WaitGroup

	mu      sync.Mutex
	trouble map[topology.NodeID]error // of the latest step, as far as it failed
}

// Classify runs flow classifiers as Config.Balance says, until they are closed. Hold does
// that itself. Without anybody who does it, host IDs choose the ports.
func (l *Lab) Classify() (*Classifiers, error) {
	c := &Classifiers{lab: l, all: make(map[topology.NodeID]*fabric.Classifier), done: make(chan struct{}),
		trouble: make(map[topology.NodeID]error)}
	for n := range l.Config.nodes() {
		plan, err := l.Plan(n.ID)
		if err == nil && len(plan.Suffixes) == 0 {
			continue // a host, or a core
		}
		if err == nil {
			err = l.Do(n.ID, func() (err error) {
				c.all[n.ID], err = fabric.OpenClassifier(plan, l.Config.Balance)
				return err
			})
		}
		if err != nil {
			delete(c.all, n.ID)
			return nil, errors.Join(fmt.Errorf("%s: %w", n.Name, err), c.Close())
		}
	}
	for id, one := range c.all {
		c.work.Go(func() { c.run(id, one) })
	}
	return c, nil
}

func (c *Classifiers) run(id topology.NodeID, one *fabric.Classifier) {
	start := time.Now()
	tick := time.NewTicker(classifierGlance)
	defer tick.Stop()
	for {
		select {
		case <-c.done:
			return
		case <-tick.C:
		}
		err := c.lab.Do(id, func() error {
			err := one.Step(time.Since(start))
			_, err2 := one.RepairSettings()
			return errors.Join(err, err2)
		})
		c.mu.Lock()
		c.trouble[id] = err
		c.mu.Unlock()
	}
}

// Stats is the sum of what all have counted.
func (c *Classifiers) Stats() (sum fabric.ClassifierStats, err error) {
	for _, one := range c.all {
		s, e := one.Stats()
		sum.Rule, err = s.Rule, errors.Join(err, e)
		sum.Known += s.Known
		sum.Flows += s.Flows
		sum.Rescued += s.Rescued
		sum.Moved += s.Moved
		sum.Evicted += s.Evicted
		sum.Full += s.Full
		sum.Late += s.Late
	}
	return sum, err
}

// Close ends and removes the classifiers. It returns what went wrong last.
func (c *Classifiers) Close() (err error) {
	close(c.done)
	c.work.Wait()
	for id, one := range c.all {
		e := errors.Join(c.trouble[id], c.lab.Do(id, one.Detach))
		if e != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w", c.lab.Config.plant().Node(id).Name, e))
		}
	}
	return err
}

// Classified is Classifiers.Stats of those that Hold runs; nil if it runs none.
func (l *Lab) Classified() (*fabric.ClassifierStats, error) {
	if l.classifiers == nil {
		return nil, nil
	}
	s, err := l.classifiers.Stats()
	return &s, err
}
