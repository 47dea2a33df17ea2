package daemon

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"weft/internal/config"
	"weft/internal/hostprog"
)

// maxDatagrams bounds the list datagrams, of ports and prefixes together.
const maxDatagrams = 256

// datagrams returns the configuration's list; validate has found it good.
func (c *Config) datagrams() hostprog.Datagrams {
	d, _ := c.listed()
	return d
}

// listed reads the configuration's list.
func (c *Config) listed() (d hostprog.Datagrams, err error) {
	for i, entry := range c.Datagrams {
		key := fmt.Sprintf("datagrams[%d]", i)
		if p, err := prefixOf(entry); err == nil {
			if !p.Addr().Is4() {
				return d, c.lines.Errorf(key, "%s is not IPv4; datagrams of IPv6 keep to one path", entry)
			}
			d.Hosts = append(d.Hosts, p)
			continue
		}
		port, err := strconv.ParseUint(entry, 10, 16)
		if err != nil || port == 0 {
			return d, c.lines.Errorf(key, "%q is neither a port, from 1 to 65535, nor a prefix such as 10.1.0.0/16", strings.TrimSpace(entry))
		}
		d.Ports = append(d.Ports, uint16(port))
	}
	return d, nil
}

// prefixOf reads a prefix, or an address.
func prefixOf(entry string) (netip.Prefix, error) {
	if a, err := netip.ParseAddr(entry); err == nil {
		return a.Prefix(a.BitLen())
	}
	return netip.ParsePrefix(entry)
}

func (c *Config) checkDatagrams() error {
	if _, err := c.listed(); err != nil {
		return err
	}
	switch {
	case len(c.Datagrams) == 0:
	case len(c.Datagrams) > maxDatagrams:
		return c.lines.Errorf("datagrams", "has %d entries, must have at most %d; join prefixes", len(c.Datagrams), maxDatagrams)
	case !c.offloads():
		return c.lines.Errorf("datagrams", "are for mode: auto or offload; in mode gateway UDP keeps to one path")
	case len(c.Uplink) > 1 && c.Resequence != config.No:
		return c.lines.Errorf("datagrams", "are put in order at one uplink, and there are %d; with resequence: false this host only sprays them", len(c.Uplink))
	case c.Resequence == config.No && c.ReceiversResequence != config.Yes:
		return c.lines.Errorf("datagrams", "are put in order by receivers with resequence: true, and sprayed only with receivers_resequence: true; set these, or leave datagrams out")
	}
	return nil
}

// spraysDatagrams are those that this host sprays: all receivers must put them in order, which
// somebody must have said.
func (c *Config) spraysDatagrams() hostprog.Datagrams {
	if !c.offloads() || c.ReceiversResequence != config.Yes {
		return hostprog.Datagrams{}
	}
	return c.datagrams()
}
