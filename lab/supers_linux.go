package lab

import (
	"fmt"

	"weft/internal/kernel"
	"weft/topology"
)

// AllowSupers lets the ports of all switches pass super-segments over IPv4 of so many bytes
// whole, which may be more than 64 KB. Hosts stay as they are.
func (l *Lab) AllowSupers(bytes int) error {
	for n := range l.Config.nodes() {
		if n.Layer == topology.LayerHost {
			continue
		}
		ports, err := l.PortBytes(n.ID)
		if err != nil {
			return err
		}
		err = l.Do(n.ID, func() error {
			for _, p := range ports {
				if _, err := kernel.SetSupers(p.Port, bytes); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("%s: %w", n.Name, err)
		}
	}
	return nil
}
