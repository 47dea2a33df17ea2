package daemon

import (
	"fmt"
	"log/slog"

	"weft/internal/config"
	"weft/topology"
)

// EmbedConfig says what Embed runs.
type EmbedConfig struct {
	// Config is what a file would say, beginning with Defaults. Its Mode, Topology, BGP, User
	// and the updates of Failures have no effect.
	Config
	// Fabric is the fabric as Config.Address sees it, as it stands. Fabric6 is the same for
	// IPv6 (topology.FromGraph); nil for none.
	Fabric, Fabric6 *topology.Topology
	// Log gets the events of a daemon; nil: nobody does.
	Log *slog.Logger
}

// Defaults returns the configuration of an empty file.
func Defaults() Config { return defaults() }

// embedded returns the configuration that is run: mode offload, with order restored at both
// ends.
func (e *EmbedConfig) embedded() (*Config, error) {
	c := e.Config
	c.Mode, c.Topology, c.BGP, c.lines = ModeOffload, "", BGP{}, config.Of("weft")
	c.Resequence, c.ReceiversResequence = config.Yes, config.Yes
	c.Failures.Updates, c.Failures.Keys = false, nil
	c.views = views{e.Fabric, e.Fabric6}
	for _, check := range []func() error{c.checkMode, c.checkGiven, c.checkPolicy, c.checkFailures, c.checkResequencer, c.checkTUN, c.checkRest} {
		if err := check(); err != nil {
			return nil, err
		}
	}
	return &c, nil
}

// checkGiven is checkFabric of fabrics that are given.
func (c *Config) checkGiven() error {
	if c.tunnels() {
		return c.lines.Errorf("encapsulation", "udp goes to peers, not through a fabric; use ipip or srv6")
	}
	if err := c.checkPlace(); err != nil {
		return err
	}
	return c.checkOuter()
}

// given takes over views of which one has changed, of the same fabrics or of others.
func (c *Config) given(v views) (next *Config, err error) {
	changed := *c
	changed.views = v
	if err := changed.checkGiven(); err != nil {
		return nil, err
	}
	if six := v.fabric6; six != nil && six.Computed() {
		return nil, fmt.Errorf("%v is no fabric as an IPv6 address sees it: topology.FromGraph makes one", six)
	}
	return &changed, nil
}
