package fabric

import (
	"errors"
	"fmt"
	"io/fs"

	"golang.org/x/sys/unix"

	"weft/encap"
	"weft/internal/kernel"
)

// SetSysctls writes those that differ, in the network namespace of the calling
// thread.
func (r *Report) SetSysctls(settings []Sysctl) (changed int, err error) {
	for _, s := range settings {
		was, wrote, err := kernel.SetSysctl(s)
		switch {
		case errors.Is(err, fs.ErrNotExist) && s.Optional:
			r.Notes = append(r.Notes, fmt.Sprintf("this kernel has no %s", s.Key))
			continue
		case errors.Is(err, fs.ErrNotExist):
			return changed, fmt.Errorf("sysctl %s: %w", s.Key, kernel.ErrNoSetting)
		case errors.Is(err, unix.EROFS):
			return changed, fmt.Errorf("sysctl %s=%s: /proc/sys is read-only here (a container?); set it from outside or run privileged", s.Key, s.Value)
		case err != nil:
			return changed, kernel.Explain(fmt.Errorf("sysctl -w %s=%s: %w", s.Key, s.Value, err))
		}
		if wrote {
			changed++
			r.Did = append(r.Did, fmt.Sprintf("set %s to %s, which was %s", s.Key, s.Value, was))
		}
	}
	return changed, nil
}

// applySysctls is SetSysctls that counts what it has changed.
func (r *Report) applySysctls(settings []Sysctl) error {
	n, err := r.SetSysctls(settings)
	r.Changed += n
	return err
}

// Report says what Apply did.
type Report struct {
	Changed int             // settings that were not as planned before
	Did     []string        // the same in words, a sentence for each kind
	Decap   string          // how IP-in-IP is decapsulated: DecapIPIP, DecapEBPF, or "" on nodes that do not
	Labels  []encap.Carrier // those of labels by which it forwards
	Plain   string          // why host IDs choose no table although the plan has some; "" if they do
	Notes   []string        // what this kernel lacks, and what that means
}
