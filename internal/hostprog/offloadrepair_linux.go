package hostprog

import (
	"fmt"
	"time"
)

// Beat says that the process attends to the paths: see OffloadConfig.Patience. Call it
// at least four times as often. It waits for no other method, and makes no system call
// that a process without privileges might be refused.
func (o *Offload) Beat() error { return o.heart.beat(errOffloadClosed) }

// Repair compares what the Offload has at the uplink with what should be there: the
// program, that it comes before those of others, and the device's settings. It mends
// what differs, and describes in a sentence each what it has mended. Call it often: when
// nothing differs it costs some 30 µs, by clsact 50. To move the program to the front
// takes two steps, between which a packet leaves as it is.
//
// It fails with ErrUplinkGone if the device does not exist any more, and with
// ErrReplaced if another AttachOffload has replaced the program; a device that was
// renamed is the same. Where others move their program to the front again and again,
// Repair gives in for a minute, and its error names that program.
func (o *Offload) Repair() (mended []string, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.handle == nil {
		return nil, errOffloadClosed
	}
	err = o.home.Do(func() error {
		mended, err = o.at.MendWith(o.settings, o.handle, time.Now())
		return err
	})
	if err != nil {
		return mended, fmt.Errorf("offload: %w", err)
	}
	return mended, nil
}

// Foreign lists the programs and filters of others at the uplink's egress, in the order
// in which they run.
func (o *Offload) Foreign() (all []ForeignProgram, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.handle == nil {
		return nil, errOffloadClosed
	}
	err = o.home.Do(func() error {
		all, err = o.at.Foreign(o.handle)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("offload: %w", err)
	}
	return all, nil
}
