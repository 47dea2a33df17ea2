package join

import (
	"fmt"
	"slices"
	"time"

	"weft/mesh"
)

// ownKeys are a host's keys when it begins. Of two, nobody knows how far the newer one had
// come, so the host goes back to where that is announced: others accept both. Those that know
// the older one alone have it in use until they have seen the newer one.
func ownKeys(kept []mesh.PrivateKey) ([]mesh.OwnKey, error) {
	switch len(kept) {
	case 0:
		return []mesh.OwnKey{{PrivateKey: mesh.NewPrivateKey(0)}}, nil
	case 1:
		return []mesh.OwnKey{{PrivateKey: kept[0]}}, nil
	}
	older, newer := kept[0], kept[1]
	if follows(older, newer) {
		older, newer = newer, older
	}
	if len(kept) > mesh.MaxKeys || !follows(newer, older) {
		return nil, fmt.Errorf("join: Config.Keys are %d: one, or two of generations that follow each other, are wanted", len(kept))
	}
	return []mesh.OwnKey{{PrivateKey: older, Announced: 1, InUse: 1}, {PrivateKey: newer}}, nil // 1: before all that comes
}

// follows reports whether a key has the generation behind another one's.
func follows(k, former mesh.PrivateKey) bool {
	return k.Generation == (former.Generation+1)%mesh.Generations
}

// tooLong is after how many times Config.Renew a former key goes though somebody is registered
// who has not seen the next one. Else one that hangs would have all keep their keys.
const tooLong = 10

// renew takes the next step of replacing the key, once the directory knows the one before.
func (l *loop) renew() {
	keys := l.self.Keys
	next, last := keys, false
	switch {
	case !l.put || l.putting || !l.told || l.readOnly:
		return
	case len(keys) == 1:
		if l.c.Renew == 0 || time.Since(l.began) < l.c.Renew {
			return
		}
		next = append(slices.Clone(keys), mesh.OwnKey{PrivateKey: mesh.NewPrivateKey(keys[0].Generation + 1)})
	case keys[1].InUse == 0 && keys[1].Announced > keys[0].Announced:
		next = []mesh.OwnKey{keys[1], keys[0]}
	case l.view.AllHaveSeen(l.c.Name, keys[0].InUse) || l.c.Renew > 0 && time.Since(l.stepped) > tooLong*l.c.Renew:
		next, last = keys[:1:1], true
	default:
		return
	}
	if err := l.keep(next); err != nil {
		return
	}
	l.stepped = time.Now()
	if l.self.Keys = next; last {
		l.began = time.Now()
		l.update(func(s *Status) { s.Renewed++ })
	}
	l.stale = true // before the directory tells others: the host accepts what it announces
}

// keep has keys kept that others will learn of.
func (l *loop) keep(keys []mesh.OwnKey) error {
	if l.c.KeepKeys == nil {
		return nil
	}
	var all []mesh.PrivateKey
	for _, k := range keys {
		all = append(all, k.PrivateKey)
	}
	err, why := l.c.KeepKeys(all), ""
	if err != nil {
		why = "the key is not renewed: " + err.Error()
	}
	if why != l.unkept {
		l.update(func(s *Status) {
			if s.Why == "" || s.Why == l.unkept {
				s.Why = why
			}
		})
		if l.unkept = why; err != nil {
			l.log.Warn("key not renewed", "why", err)
		}
	}
	return err
}

// renumber begins anew with a directory that has been restored: what it knows of others' keys, and
// of the host's own, may be older than what the host knows. Of two keys the host announces the newer
// one again, as when it begins.
func (l *loop) renumber() {
	l.view.Renumber()
	l.settles = time.Now().Add(maxSpread)
	l.unregistered()
	l.latest, l.registered.Seen = 0, 0
	kept := make([]mesh.PrivateKey, 0, len(l.self.Keys))
	for _, k := range l.self.Keys {
		kept = append(kept, k.PrivateKey)
	}
	if keys, err := ownKeys(kept); err == nil && len(kept) > 0 {
		l.self.Keys = keys
	}
}

// settle believes a directory that has been restored, once all have had the time to register again.
func (l *loop) settle() {
	if l.settles.IsZero() || time.Now().Before(l.settles) {
		return
	}
	if l.settles = (time.Time{}); l.view.Settle() {
		l.stale = true
	}
}
