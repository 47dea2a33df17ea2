package failover

import (
	"context"
	"fmt"
	"time"

	"weft/lab"
)

const (
	// restoreLimit is how long a healed part may stay unused: flap damping and growing
	// hold-downs take seconds.
	restoreLimit = 30 * time.Second
	pollEvery    = 20 * time.Millisecond
	// A hole that still takes packets in the last part of an outage is not closed.
	stillOpen = 5
)

// repeat lets a target fail once, and heals it.
func (r *rig) repeat(ctx context.Context, target string, mode lab.FailureMode) (rep Repetition, err error) {
	o := r.options
	rep.Target = target
	links, err := linksOf(o.Topology, target)
	if err != nil {
		return rep, err
	}
	hole := newHole(o.Topology, pairsOf(r.to), links...)
	lost, _ := r.streams.lostConnections()
	settled := time.Now()
	if err := sleep(ctx, o.Settle); err != nil {
		return rep, err
	}
	if err := r.aim(hole.bounces); err != nil {
		return rep, err
	}
	r.takeFalls() // of the healing before
	failed, err := r.lab.Fail(target, mode)
	if err != nil {
		return rep, err
	}
	defer func() {
		if err != nil {
			r.lab.Heal(target) // the error that counts is there already
		}
	}()
	rep.GoodputBefore = r.series.between(settled, failed)
	if err := sleep(ctx, o.Outage); err != nil {
		return rep, err
	}
	over := time.Now()
	if err := r.account(&rep, hole, failed, over); err != nil {
		return rep, err
	}
	rep.GoodputDuring = r.series.between(failed, over)
	if err := r.heal(ctx, &rep, hole); err != nil {
		return rep, err
	}
	healed := time.Now()
	if err := sleep(ctx, o.Settle); err != nil {
		return rep, err
	}
	now := time.Now()
	rep.GoodputAfter = r.series.between(healed, now)
	after, _ := r.streams.lostConnections()
	rep.Lost = after - lost
	rep.Stuck = max(0, len(r.series.idle(healed, now))-after)
	r.noteStuck(&rep)
	return rep, nil
}

// account reads the taps after an outage.
func (r *rig) account(rep *Repetition, hole *hole, failed, over time.Time) error {
	half := failed.Add(over.Sub(failed) / 2)
	falls := r.takeFalls()
	left := newEpisode(hole, failed, half, falls)
	if err := r.drain(left.see); err != nil {
		return err
	}
	rep.LeftMs = milliseconds(left.late)
	rep.AfterMs = milliseconds(left.after)
	for _, f := range falls {
		rep.FallMs = max(rep.FallMs, milliseconds(f.to.Sub(f.from)))
	}
	rep.HolePackets = left.packets
	rep.Paused = r.pauses != nil && r.pauses.Between(failed, failed.Add(pauseWindow))
	rep.Closed = over.Sub(left.last) > over.Sub(failed)/stillOpen
	rep.OthersExpected, rep.OthersKept = len(hole.others), len(left.kept)
	return r.writeTrace(rep, left)
}

// writeTrace writes what has happened from a failure to the last packet.
func (r *rig) writeTrace(rep *Repetition, left *episode) error {
	if r.tracer == nil {
		return nil
	}
	o := r.options
	if err := r.tracer.drain(o.Topology); err != nil {
		return err
	}
	r.tracer.lasts(o.Topology, left)
	title := fmt.Sprintf("%s at %s: last packet into the hole after %.3f ms, %.3f after its link was down, %d packets; seed %d",
		rep.Target, left.since.UTC().Format(time.RFC3339Nano), rep.LeftMs, rep.AfterMs, rep.HolePackets, o.Seed)
	events := r.tracer.take(left.since, latest(left.since, left.last).Add(traceAfter))
	return writeTrace(o.Trace, title, left.since, events)
}

// heal heals the target and waits until all pairs use it again.
func (r *rig) heal(ctx context.Context, rep *Repetition, hole *hole) error {
	healed, err := r.lab.Heal(rep.Target)
	if err != nil {
		return err
	}
	used := make(map[path]bool)
	last := healed
	rep.RestoredMs = -1
	for len(used) < len(hole.dead) && time.Since(healed) < restoreLimit {
		if err := sleep(ctx, pollEvery); err != nil {
			return err
		}
		err := r.drain(func(s sighting) {
			if _, ok := hole.dead[s.path]; ok && !used[s.path] && s.at.After(healed) {
				used[s.path] = true
				if s.at.After(last) {
					last = s.at
				}
			}
		})
		if err != nil {
			return err
		}
	}
	if len(used) == len(hole.dead) {
		rep.RestoredMs = milliseconds(last.Sub(healed))
	}
	return r.aim(nil)
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
