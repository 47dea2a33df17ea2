package main

import (
	"errors"
	"fmt"

	"github.com/google/nftables"
)

// table is a table of the firewall's.
type table struct {
	family nftables.TableFamily
	name   string
}

// listTables returns the tables of this network namespace.
func listTables() (map[table]bool, error) {
	c, err := nftables.New()
	if err != nil {
		return nil, err
	}
	list, err := c.ListTables()
	if err != nil {
		return nil, fmt.Errorf("list the tables of nftables: %w", err)
	}
	all := make(map[table]bool)
	for _, t := range list {
		all[table{t.Family, t.Name}] = true
	}
	return all, nil
}

// removeTables removes all tables but those. iptables makes tables that nobody removes when
// their last rule goes. Every packet passes through them, and connections are tracked for them.
func removeTables(but map[table]bool) error {
	now, err := listTables()
	if err != nil {
		return err
	}
	c, err := nftables.New()
	if err != nil {
		return err
	}
	for t := range now {
		if !but[t] {
			c.DelTable(&nftables.Table{Family: t.family, Name: t.name})
		}
	}
	if err := c.Flush(); err != nil {
		return errors.Join(errors.New("remove tailscaled's tables of nftables"), err)
	}
	return nil
}
