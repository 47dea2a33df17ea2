package hostprog

import (
	"fmt"
	"time"

	"weft/internal/kernel"
)

// Seen returns SteerStats' count of packets for which the program ran, at the price of one
// system call. If it does not grow while packets come in, something keeps them from the
// program: see Foreign and Repair.
func (s *Steer) Seen() (n uint64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.handle == nil {
		return 0, errSteerClosed
	}
	err = kernel.SumCounter(s.counts, steerSeen, &n)
	return n, err
}

// steerSeen is SEEN of bpf/steer.c.
const steerSeen = 2

// Repair is Offload.Repair for what the Steer has at the uplink's ingress.
func (s *Steer) Repair() (mended []string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.handle == nil {
		return nil, errSteerClosed
	}
	err = s.home.Do(func() error {
		mended, err = s.at.MendWith(s.settings, s.handle, time.Now())
		return err
	})
	if err != nil {
		return mended, fmt.Errorf("steer: %w", err)
	}
	return mended, nil
}

// Foreign lists other owners' programs and filters at the uplink's ingress, in the order in
// which they run.
func (s *Steer) Foreign() (all []ForeignProgram, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.handle == nil {
		return nil, errSteerClosed
	}
	err = s.home.Do(func() error {
		all, err = s.at.Foreign(s.handle)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("steer: %w", err)
	}
	return all, nil
}
