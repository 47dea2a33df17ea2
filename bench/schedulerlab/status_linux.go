package schedulerlab

import (
	"context"
	"fmt"

	"weft/internal/schedulerd"
	"weft/topology"
)

// Status is the scheduler's.
func (s *Scheduled) Status(ctx context.Context) (st schedulerd.Status, err error) {
	return st, s.ask(ctx, scheduler, &st)
}

// Node is what a node says of scheduling.
type Node struct {
	Leader  string    `json:"leader"`
	Pins    int       `json:"pins"`
	Set     uint64    `json:"set"`
	Expired uint64    `json:"expired"`
	Unknown uint64    `json:"unknown"`
	Loops   uint64    `json:"loops"`
	LoopsMS []float64 `json:"loop_ms"`
	Error   string    `json:"error"`
	Large   []struct {
		Flow string `json:"flow"`
	} `json:"large"`
	Pinned []struct {
		Flow string `json:"flow"`
		Path int    `json:"path"`
	} `json:"pinned"`
}

type agent struct {
	BalanceError string `json:"balance_error"`
	Scheduler    Node   `json:"scheduler"`
}

func (s *Scheduled) agent(ctx context.Context, name string) (a agent, err error) {
	return a, s.ask(ctx, name, &a)
}

// Switches returns what each switch says, by its name.
func (s *Scheduled) Switches(ctx context.Context) (map[string]Node, error) {
	all := make(map[string]Node)
	for _, n := range s.agents {
		a, err := s.agent(ctx, n.Name)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", n.Name, err)
		}
		all[n.Name] = a.Scheduler
	}
	return all, nil
}

// Edge reports whether flows begin at a switch.
func (s *Scheduled) Edge(name string) bool {
	for _, n := range s.agents {
		if n.Name == name {
			return n.Layer == topology.LayerEdge
		}
	}
	return false
}
