package daemon

import (
	"errors"
	"time"

	"weft/internal/hostprog"
)

// attached is what a program of the receiver's has.
type attached interface {
	Repair() ([]string, error)
	Foreign() ([]hostprog.ForeignProgram, error)
	Close() error
}

// programs returns those that keep arriving packets from the kernel, and packets out of the
// TUN while nobody reads it.
func (r *hostReceiver) programs() (all []attached) {
	if r.steer != nil {
		all = append(all, r.steer)
	}
	if r.order != nil {
		all = append(all, r.order)
	}
	if r.detour != nil {
		all = append(all, r.detour)
	}
	return all
}

// Repair mends the programs.
func (r *hostReceiver) Repair() (mended []string, err error) {
	for _, p := range r.programs() {
		did, err2 := p.Repair()
		mended, err = append(mended, did...), errors.Join(err, err2)
	}
	if r.admission != nil {
		err = errors.Join(err, r.admission.check(time.Now()))
	}
	return mended, err
}

// Foreign lists other owners' programs where those are.
func (r *hostReceiver) Foreign() (all []hostprog.ForeignProgram, err error) {
	for _, p := range r.programs() {
		more, err2 := p.Foreign()
		all, err = append(all, more...), errors.Join(err, err2)
	}
	return all, err
}

func (r *hostReceiver) steering() any {
	if r.steer == nil {
		return nil
	}
	return orError(r.steer.Stats())
}

func (r *hostReceiver) ordering() any {
	if r.order == nil {
		return nil
	}
	return orError(r.order.Stats())
}
