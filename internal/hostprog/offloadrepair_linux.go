package hostprog

import (
	"fmt"
	"time"
)

// Beat says that the process attends to the paths: see OffloadConfig.Patience. Call it at
// least four times within that. It waits for no other method, and makes no system call that
// needs privileges.
func (o *Offload) Beat() error { return o.heart.beat(errOffloadClosed) }

// Repair compares what the Offload has at the uplink with what should be there: the
// program, that it comes before those of others, and the device's settings. It mends what
// differs and returns a sentence for each thing it has mended. Call it often: when nothing
// differs it costs some 30 µs, with clsact 50. Moving the program to the front takes two
// steps; packets in between leave as they are.
//
// It fails with ErrUplinkGone if the device does not exist any more, and with ErrReplaced
// if another AttachOffload has replaced the program. A renamed device is the same device.
// If another owner moves its program to the front again and again, Repair gives in for a
// minute, and its error names that program.
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

// Foreign lists other owners' programs and filters at the uplink's egress, in the order in
// which they run.
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
